package secrets

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/flowhost/flowhost/run/access"
)

// source is where a value is. Secrets with the same source share lookups and values. Paths
// are absolute.
type source struct {
	env, file, age, vault string // one of them is set
	key                   string
}

func sourceOf(s *access.Secret) source {
	from := source{env: s.Env, vault: s.Vault, key: s.Key}
	if s.File != "" {
		from.file = absolute(s.Folder, s.File)
	}
	if s.Age != "" {
		from.age = absolute(s.Folder, s.Age)
	}
	return from
}

func absolute(dir, path string) string {
	if path = filepath.FromSlash(path); filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// place names the source for the operator.
func (from source) place() string {
	key := ""
	if from.key != "" {
		key = ", key " + from.key
	}
	switch {
	case from.env != "":
		return "environment variable " + from.env
	case from.file != "":
		return "file " + from.file
	case from.age != "":
		return "file " + from.age + key
	}
	return "Vault path " + from.vault + key
}

// read reads the value at a source.
func (s *Store) read(ctx context.Context, from source) (string, *failure) {
	switch {
	case from.env != "":
		value, ok := s.config.Env(from.env)
		if !ok {
			return "", &failure{text: "its environment variable is not set: set it and restart the host", cause: from.place()}
		}
		return value, nil
	case from.file != "":
		content, failed := s.readPrivate(from.file, maxValue+2)
		return withoutNewline(content), failed
	case from.age != "":
		return s.readAge(from.age, from.key)
	case from.vault != "":
		return s.vault.read(ctx, from.vault, from.key)
	}
	return "", &failure{text: "its declaration has no source: set env, file, age or vault"}
}

// withoutNewline removes the newline with which editors and echo end a file.
func withoutNewline(content []byte) string {
	text, ok := strings.CutSuffix(string(content), "\n")
	if ok {
		text = strings.TrimSuffix(text, "\r")
	}
	return text
}
