package reachspec

import (
	"errors"

	"github.com/flowhost/flowhost/internal/httprule"
)

// BaseURL checks the beginning of the URLs of a connection.
func BaseURL(text string) error {
	if err := URL(text, "http", "https"); err != nil {
		return err
	}
	_, err := httprule.ParseBase(text)
	return err
}

// RequestRule returns the canonical form of METHOD[,METHOD] scheme://host[:port]/path.
func RequestRule(text string) (string, error) { return canonical(httprule.Parse(text)) }

// PathRule returns the canonical form of METHOD[,METHOD] /path, a rule of a connection.
func PathRule(text string) (string, error) { return canonical(httprule.ParsePath(text)) }

func canonical(r httprule.Rule, err error) (string, error) {
	if err == nil {
		return r.String(), nil
	}
	if inner := errors.Unwrap(err); inner != nil { // the rest quotes the rule
		return "", inner
	}
	return "", err
}
