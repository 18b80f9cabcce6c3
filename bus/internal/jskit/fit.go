package jskit

// Fit creates something whose size the server reserves, with the wanted size, or with half of
// the room that the server has left if that is less: the next ones find some, too. Below the
// least size it fails as create does.
func Fit(want, least int64, create, resize func(bytes int64) error) error {
	for size := 2 * want; ; size /= 2 {
		err := create(size)
		switch {
		case err == nil:
			return resize(size / 2)
		case !IsFull(err) || size/2 < least:
			return err
		}
	}
}
