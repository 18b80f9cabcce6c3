package secrets

// Cached is how many values and failures a Store has in memory.
func Cached(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.cached)
}
