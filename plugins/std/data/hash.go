package main

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"

	"github.com/flowhost/flowhost/sdk"
)

// Hash is what is hashed.
type Hash struct {
	Source
	Algorithm string `json:"algorithm,omitempty"` // default "sha256"; "sha512", and for those who expect them "sha1" and "md5"
	Secret    string `json:"secret,omitempty"`    // name of a secret that the task is handed: the result is an HMAC with it
}

// Sum is a hash.
type Sum struct {
	Hex    string `json:"hex"`
	Base64 string `json:"base64"`
}

var algorithms = map[string]func() hash.Hash{"": sha256.New, "sha256": sha256.New, "sha512": sha512.New, "sha1": sha1.New, "md5": md5.New}

func sum(ctx sdk.Context, in Hash) (Sum, error) {
	algorithm := algorithms[in.Algorithm]
	if algorithm == nil {
		return Sum{}, sdk.Fail("input", "algorithm is %q, and may be \"sha256\", \"sha512\", \"sha1\" or \"md5\"", in.Algorithm)
	}
	h := algorithm()
	if in.Secret != "" {
		key, err := ctx.Secret(in.Secret)
		if err != nil {
			return Sum{}, err
		}
		h = hmac.New(algorithm, []byte(key))
	}
	source, err := in.open(ctx)
	if err != nil {
		return Sum{}, err
	}
	defer source.Close()
	if _, err := io.Copy(h, source); err != nil {
		return Sum{}, err
	}
	digest := h.Sum(nil)
	return Sum{hex.EncodeToString(digest), base64.StdEncoding.EncodeToString(digest)}, nil
}
