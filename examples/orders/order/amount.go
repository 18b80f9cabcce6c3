package order

import (
	"fmt"
	"strconv"
	"strings"
)

// Amount is money in hundredths. In JSON it is a number with at most two
// decimals, read and written exactly.
type Amount int64

// maxDigits of an amount before its decimal point; what has more is no sensible
// amount, and an int64 of hundredths holds all that have not.
const maxDigits = 15

// UnmarshalJSON reads a JSON number without an exponent; null leaves the amount
// as it is.
func (a *Amount) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	fraction = strings.TrimRight(fraction, "0")
	if len(whole) > maxDigits || len(fraction) > 2 {
		return fmt.Errorf("%s is not an amount: at most two decimals and %d digits before them are expected", text, maxDigits)
	}
	hundredths, err := strconv.ParseUint(whole+(fraction + "00")[:2], 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not an amount: a plain number is expected", text)
	}
	*a = Amount(hundredths)
	if negative {
		*a = -*a
	}
	return nil
}

// MarshalJSON writes a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// String gives the amount with its decimals, none when they are zero.
func (a Amount) String() string {
	sign, hundredths := "", uint64(a)
	if a < 0 {
		sign, hundredths = "-", -uint64(a)
	}
	whole, fraction := hundredths/100, hundredths%100
	if fraction == 0 {
		return fmt.Sprintf("%s%d", sign, whole)
	}
	return fmt.Sprintf("%s%d.%02d", sign, whole, fraction)
}
