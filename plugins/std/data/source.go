package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/flowhost/flowhost/sdk"
)

// Source is a text, or an artifact.
type Source struct {
	Text     *string       `json:"text,omitempty"`
	Artifact *sdk.Artifact `json:"artifact,omitempty"`
}

// open reads the source.
func (s *Source) open(ctx sdk.Context) (io.ReadCloser, error) {
	switch {
	case s.Text != nil && s.Artifact != nil:
		return nil, sdk.Fail("input", "text and artifact exclude each other: pass one of them")
	case s.Artifact != nil:
		return ctx.OpenArtifact(*s.Artifact)
	case s.Text != nil:
		return io.NopCloser(strings.NewReader(*s.Text)), nil
	}
	return nil, sdk.Fail("input", "text or artifact is missing: pass one of them")
}

// Stored is a text, or an artifact that has it.
type Stored struct {
	Text     *string       `json:"text,omitempty"`
	Artifact *sdk.Artifact `json:"artifact,omitempty"`
}

// store returns a text, as an artifact if a name for one is given.
func store(ctx sdk.Context, text []byte, name string) (Stored, error) {
	if name == "" {
		s := string(text)
		return Stored{Text: &s}, nil
	}
	a, err := write(ctx, name, bytes.NewReader(text))
	return Stored{Artifact: a}, err
}

// write stores an artifact.
func write(ctx sdk.Context, name string, content io.Reader) (*sdk.Artifact, error) {
	w, err := ctx.Artifact(name)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := io.Copy(w, content); err != nil {
		return nil, err
	}
	a, err := w.Commit()
	return &a, err
}
