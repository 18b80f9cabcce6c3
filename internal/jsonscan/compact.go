package jsonscan

// AppendCompact appends a value that [Check] accepted, without the white space that means
// nothing.
func AppendCompact(out, data []byte) []byte {
	for i := 0; i < len(data); {
		from := i
		for i < len(data) && !isSpace(data[i]) {
			if data[i] != '"' {
				i++
				continue
			}
			var err error
			if i, err = endOfText(data, i+1); err != nil {
				i = len(data)
			}
		}
		out = append(out, data[from:i]...)
		i = skipSpace(data, i)
	}
	return out
}
