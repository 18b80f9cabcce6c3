package jsonscan

func isDigit(c byte) bool { return c-'0' <= 9 }

func endOfDigits(data []byte, i int) int {
	for i < len(data) && isDigit(data[i]) {
		i++
	}
	return i
}

// endOfNumber is the index behind a number (RFC 8259, section 6).
func endOfNumber(data []byte, i int) (int, error) {
	if data[i] == '-' {
		i++
	}
	start := i
	i = endOfDigits(data, i)
	switch {
	case i == start:
		return i, ErrSyntax
	case data[start] == '0' && i > start+1:
		return start + 1, ErrSyntax
	}
	if i < len(data) && data[i] == '.' {
		point := i
		if i = endOfDigits(data, i+1); i == point+1 {
			return i, ErrSyntax
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		var err error
		if i, err = endOfExponent(data, i+1); err != nil {
			return i, err
		}
	}
	if i-start > MaxNumber {
		return start, ErrNumber
	}
	return i, nil
}

// endOfExponent is the index behind an exponent, given that of what follows its letter.
func endOfExponent(data []byte, i int) (int, error) {
	if i < len(data) && (data[i] == '+' || data[i] == '-') {
		i++
	}
	start := i
	if i = endOfDigits(data, i); i == start {
		return i, ErrSyntax
	}
	for start < i && data[start] == '0' {
		start++
	}
	if i-start > maxExponent {
		return start, ErrExponent
	}
	return i, nil
}
