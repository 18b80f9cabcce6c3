package reachspec

import (
	"errors"
	"path"
	"path/filepath"
	"strings"

	"github.com/flowhost/flowhost/flows/internal/lang"
)

// allowSources is the sources block of an allow block: the words of a secret block, with
// patterns.
var allowSources = &lang.Schema{
	Title: "a sources block",
	Arguments: []lang.Argument{
		{Name: "env", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `environment variables of the host: ["BILLING_*"]`},
		{Name: "file", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `files: ["/run/credentials/**"]`},
		{Name: "age", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `files encrypted by age: ["/srv/flows/*/secrets.age"]`},
		{Name: "vault", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `secrets of Vault: ["kv/data/billing/**"]`},
	},
	Foreign: map[string]string{
		"path": "Write file = [\"…\"].", "files": "Write file = [\"…\"].", "key": "The keys of age and vault are not bounded: allow the place.",
	},
}

// VariablePattern checks the name of an environment variable, whose end may be *.
func VariablePattern(text string) error {
	prefix, all := strings.CutSuffix(text, "*")
	if all && prefix == "" || Variable(prefix) == nil {
		return nil
	}
	return errors.New("it must be the name of a variable, with * only at its end, such as \"BILLING_*\"")
}

// FilePattern returns the canonical form of a pattern of files, in which a relative path is
// one below the directory of the settings.
func FilePattern(folder string) func(text string) (string, error) {
	return func(text string) (string, error) {
		local := filepath.FromSlash(text)
		switch {
		case text == "" || strings.ContainsAny(text, "\x00\n"):
			return "", errors.New("it must be the path of a file, or a pattern such as \"/run/credentials/**\"")
		case !filepath.IsAbs(local):
			local = filepath.Join(folder, local)
		}
		slashed := filepath.ToSlash(local)
		for segment := range strings.SplitSeq(filepath.ToSlash(text), "/") {
			if segment == ".." {
				return "", errors.New("it must have no .. in it, which could lead elsewhere by a link")
			}
		}
		return path.Clean(slashed), wildcards(path.Clean(slashed))
	}
}

// VaultPattern checks a pattern of paths of Vault.
func VaultPattern(text string) error {
	if err := VaultPath(text); err != nil {
		return errors.New("it must be a path, or a pattern such as \"kv/data/billing/**\"")
	}
	return wildcards(text)
}

// wildcards checks that * and ** are whole segments of a path, and ** the last one.
func wildcards(text string) error {
	segments := strings.Split(text, "/")
	for i, segment := range segments {
		switch {
		case segment == "**" && i < len(segments)-1:
			return errors.New("** can only be the last segment")
		case segment != "*" && segment != "**" && strings.Contains(segment, "*"):
			return errors.New("* and ** are whole segments of a path: write \"/run/credentials/*\"")
		}
	}
	return nil
}
