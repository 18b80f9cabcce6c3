package main

import (
	"errors"
	"fmt"
	"strings"
)

// angle is a latitude or longitude in arc seconds, north and east positive.
type angle int

const (
	arcMinute angle = 60
	arcDegree angle = 60 * arcMinute
)

var errCoordinates = errors.New("±DDMM±DDDMM or ±DDMMSS±DDDMMSS is expected")

// parseCoordinates reads a place as the table writes it, in the sign, degrees,
// minutes, seconds form of ISO 6709.
func parseCoordinates(text string) (latitude, longitude angle, err error) {
	if text == "" {
		return 0, 0, errCoordinates
	}
	split := 1 + strings.IndexAny(text[1:], "+-")
	if split != len("+DDMM") && split != len("+DDMMSS") {
		return 0, 0, errCoordinates
	}
	if len(text)-split != split+1 { // a longitude has one digit more
		return 0, 0, errCoordinates
	}
	if latitude, err = parseAngle(text[:split], 2, 90*arcDegree); err != nil {
		return 0, 0, err
	}
	longitude, err = parseAngle(text[split:], 3, 180*arcDegree)
	return latitude, longitude, err
}

// parseAngle reads a sign, the given number of digits of degrees, two digits of
// minutes and possibly two of seconds.
func parseAngle(text string, degreeDigits int, limit angle) (angle, error) {
	digits := text[1:]
	if strings.Trim(digits, "0123456789") != "" || text[0] != '+' && text[0] != '-' {
		return 0, errCoordinates
	}
	a := number(digits[:degreeDigits]) * arcDegree
	for unit := arcMinute; degreeDigits < len(digits); unit /= 60 {
		part := number(digits[degreeDigits : degreeDigits+2])
		if part >= 60 {
			return 0, fmt.Errorf("%s has %d minutes or seconds", text, part)
		}
		a += part * unit
		degreeDigits += 2
	}
	if a > limit {
		return 0, fmt.Errorf("%s is more than %d degrees", text, limit/arcDegree)
	}
	if text[0] == '-' {
		a = -a
	}
	return a, nil
}

// number is the value of decimal digits.
func number(digits string) (n angle) {
	for _, d := range digits {
		n = 10*n + angle(d-'0')
	}
	return n
}

// format writes the angle for people: 7°05′30″S. The halves are the letters of
// the positive and the negative half, "NS" or "EW".
func (a angle) format(halves string) string {
	half := halves[:1]
	if a < 0 {
		a, half = -a, halves[1:]
	}
	text := fmt.Sprintf("%d°%02d′", a/arcDegree, a%arcDegree/arcMinute)
	if seconds := a % arcMinute; seconds != 0 {
		text += fmt.Sprintf("%02d″", seconds)
	}
	return text + half
}
