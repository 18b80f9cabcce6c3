package secrets

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/flowhost/flowhost/run/access"
)

// source is where a value is. Secrets with the same source share lookups and values. Paths
// are absolute.
type source struct {
	env, file, age, vault string // one of them is set
	key                   string
	links                 string // patterns of where links in the path may lead, each on a line; empty: anywhere
}

// sourceOf is where a secret is, for a flow with this bound; nil is none.
func sourceOf(s *access.Secret, allow *access.Allow) source {
	from := source{env: s.Env, vault: s.Vault, key: s.Key}
	bounded := allow != nil && allow.Sources != nil && !s.Operator
	switch {
	case s.File != "":
		if from.file = s.Path(); bounded {
			from.links = strings.Join(allow.Sources.File, "\n")
		}
	case s.Age != "":
		if from.age = s.Path(); bounded {
			from.links = strings.Join(allow.Sources.Age, "\n")
		}
	}
	return from
}

// follow resolves the links of a path. They must not lead out of what the operator allows: a
// link is as easily made as a declaration is written.
func (from source) follow(path string) (string, *failure) {
	if from.links == "" {
		return path, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fileFailure(err)
	}
	if !access.IncludesPath(strings.Split(from.links, "\n"), real) {
		kind := "file"
		if from.age != "" {
			kind = "age"
		}
		return "", &failure{
			text:   "its file is a link that leads to where the operator allows no secrets",
			cause:  fmt.Sprintf("%s leads to %s: add %s to the allow block, or put the file itself there", path, real, access.SourceLine(kind, filepath.ToSlash(real))),
			denied: true,
		}
	}
	return real, nil
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
		path, failed := from.follow(from.file)
		if failed != nil {
			return "", failed
		}
		content, failed := s.readPrivate(path, maxValue+2)
		return withoutNewline(content), failed
	case from.age != "":
		path, failed := from.follow(from.age)
		if failed != nil {
			return "", failed
		}
		return s.readAge(path, from.key)
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
