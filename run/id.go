package run

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// ID names a run: a ULID, 26 characters of Crockford's base 32. IDs sort by the
// millisecond in which they were made.
// Format: https://github.com/ulid/spec.
type ID string

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID makes an ID for a run accepted at the given time, with 80 random bits.
func NewID(at time.Time) ID {
	raw := idTime(at)
	rand.Read(raw[6:]) // never fails: crypto/rand ends the process instead
	return encodeID(raw)
}

// DrawID is NewID with bits that random gives, 64 at a time.
func DrawID(at time.Time, random func() uint64) ID {
	raw := idTime(at)
	binary.BigEndian.PutUint16(raw[6:8], uint16(random()))
	binary.BigEndian.PutUint64(raw[8:], random())
	return encodeID(raw)
}

// idTime is the part of an ID that encodes its time.
func idTime(at time.Time) (raw [16]byte) {
	binary.BigEndian.PutUint64(raw[:8], uint64(at.UnixMilli())<<16)
	return raw
}

func encodeID(raw [16]byte) ID {
	hi, lo := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	var text [26]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return ID(text[:])
}

// ParseID checks that s has the form of an ID.
func ParseID(s string) (ID, error) {
	if len(s) != 26 || s[0] > '7' || strings.Trim(s, crockford) != "" {
		return "", fmt.Errorf("%q is not a run id: 26 characters of 0-9 and A-Z are expected", s)
	}
	return ID(s), nil
}
