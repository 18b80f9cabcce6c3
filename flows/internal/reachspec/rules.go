package reachspec

import "github.com/flowhost/flowhost/internal/httprule"

// BaseURL checks the beginning of the URLs of a connection.
func BaseURL(text string) error {
	if err := URL(text, "http", "https"); err != nil {
		return err
	}
	_, err := httprule.ParseBase(text)
	return err
}

// RequestRule returns the canonical form of METHOD[,METHOD] scheme://host[:port]/path.
func RequestRule(text string) (string, error) {
	r, err := httprule.Parse(text)
	return r.String(), err
}

// PathRule returns the canonical form of METHOD[,METHOD] /path, a rule of a connection.
func PathRule(text string) (string, error) {
	r, err := httprule.ParsePath(text)
	return r.String(), err
}
