package secrets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// vault reads secrets of the KV engine, version 2, over the HTTP API that Vault and OpenBao
// share.
type vault struct {
	store *Store

	mu     sync.Mutex
	client *http.Client // nil before the first lookup
}

// Bounds of answers and tokens.
const (
	maxAnswer = 1 << 20
	maxToken  = 16 << 10
)

func newVault(s *Store) *vault { return &vault{store: s} }

// read returns one key of the newest version of a secret.
func (v *vault) read(ctx context.Context, path, key string) (string, *failure) {
	request, failed := v.request(ctx, path)
	if failed != nil {
		return "", failed
	}
	client, failed := v.connect()
	if failed != nil {
		return "", failed
	}
	response, err := client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return "", &failure{text: "Vault does not answer", cause: request.URL.Host + ": " + err.Error(), retryable: true}
	}
	defer response.Body.Close() // which was read, or is of no use
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode != http.StatusOK:
		failed := statusFailure(response.StatusCode)
		failed.cause = request.URL.Host + ", path " + path
		return "", failed
	case err != nil:
		return "", &failure{text: "Vault's answer broke off", cause: request.URL.Host + ": " + err.Error(), retryable: true}
	case len(content) > maxAnswer:
		return "", &failure{text: "Vault's answer is longer than 1 MiB", cause: "path " + path}
	}
	value, failed := valueOf(content, key)
	if failed != nil {
		failed.cause = request.URL.Host + ", path " + path
	}
	return value, failed
}

// request is the one for a path. It needs a token.
func (v *vault) request(ctx context.Context, path string) (*http.Request, *failure) {
	config := v.store.config.Vault
	address, failed := v.address(path)
	if failed != nil {
		return nil, failed
	}
	token, failed := v.token()
	if failed != nil {
		return nil, failed
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, &failure{text: "the host's address of Vault is wrong", cause: err.Error()}
	}
	request.Header.Set("X-Vault-Token", token)
	request.Header.Set("X-Vault-Request", "true") // an agent may require it
	if config.Namespace != "" {
		request.Header.Set("X-Vault-Namespace", config.Namespace)
	}
	return request, nil
}

// address is that of a path below /v1.
func (v *vault) address(path string) (*url.URL, *failure) {
	text := v.store.config.Vault.Address
	if text == "" {
		return nil, &failure{text: "the host has no Vault: the operator sets its address in the host's settings"}
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, &failure{text: "the host's address of Vault is wrong", cause: "it must be http:// or https://, a host, and a port"}
	}
	path = strings.Trim(path, "/")
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return nil, &failure{text: fmt.Sprintf("the Vault path %q has an empty segment or one of dots", path)}
		}
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/")+"/v1/"+path, ""
	return u, nil
}

// token reads the token, which an agent may have renewed.
func (v *vault) token() (string, *failure) {
	config := v.store.config
	var token string
	switch {
	case config.Vault.TokenFile != "":
		content, failed := v.store.readPrivate(config.Vault.TokenFile, maxToken)
		if failed != nil {
			return "", &failure{text: "the host's token for Vault cannot be read", cause: failed.cause, retryable: true}
		}
		token = strings.TrimSpace(string(content))
	case config.Vault.TokenEnv != "":
		token, _ = config.Env(config.Vault.TokenEnv)
	}
	if token == "" {
		return "", &failure{text: "the host has no token for Vault: the operator sets a token file, or the name of an environment variable, in the host's settings"}
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", &failure{text: "the host's token for Vault has characters that no token has", retryable: true}
	}
	config.Seen(token)
	return token, nil
}

// connect returns the client. The certificates are read once they are needed.
func (v *vault) connect() (*http.Client, *failure) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.client != nil {
		return v.client, nil
	}
	v.warnPlain()
	transport := v.store.config.Transport
	if transport == nil {
		roots, failed := v.roots()
		if failed != nil {
			return nil, failed
		}
		transport = &http.Transport{ // no Proxy: the environment does not decide where the token goes
			DialContext:         (&net.Dialer{Timeout: longest / 2}).DialContext,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			TLSHandshakeTimeout: longest / 2,
			MaxIdleConns:        2,
			MaxConnsPerHost:     16,
			IdleConnTimeout:     30 * time.Second,
			ForceAttemptHTTP2:   true,
		}
	}
	v.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token is for this address
	}}
	return v.client, nil
}

// roots are the authorities that may vouch for the server; nil: the system's.
func (v *vault) roots() (*x509.CertPool, *failure) {
	const text = "the certificates for Vault cannot be read"
	path := v.store.config.Vault.CA
	if path == "" {
		return nil, nil
	}
	content, _, failed := readFile(path, maxAnswer)
	if failed != nil {
		return nil, &failure{text: text, cause: failed.cause, retryable: true}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, &failure{text: text, cause: path + " has no certificate in PEM form", retryable: true}
	}
	return pool, nil
}

// warnPlain logs that the token crosses a network unencrypted.
func (v *vault) warnPlain() {
	u, err := url.Parse(v.store.config.Vault.Address)
	if err != nil || u.Scheme != "http" {
		return
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		v.store.config.Log.Warn("the token for Vault and the secrets are sent unencrypted: use an address with https", "address", u.Host)
	}
}

func (v *vault) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.client != nil {
		v.client.CloseIdleConnections()
	}
}

// statusFailure explains a status. The server's words are left out: nobody knows what they
// quote.
func statusFailure(status int) *failure {
	f := &failure{detail: fmt.Sprintf("HTTP %d", status)}
	switch {
	case status >= 300 && status < 400:
		f.text = "Vault redirects to another address, which does not get the token: set the address of the active server"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		f.text = "Vault denies access: renew the host's token, or give it a policy with read on the path"
		f.retryable = true
	case status == http.StatusNotFound:
		f.text = "Vault has nothing at the path, or it was deleted: in version 2 of the KV engine data/ follows the mount"
		f.retryable = true
	case status == http.StatusPreconditionFailed, status == http.StatusTooManyRequests, status >= 500:
		f.text = "Vault is sealed, on standby or overloaded"
		f.retryable = true
	default:
		f.text = "Vault refuses the request"
	}
	return f
}

// valueOf returns a key of the secret in an answer.
func valueOf(content []byte, key string) (string, *failure) {
	var answer struct {
		Data struct {
			Data map[string]json.RawMessage `json:"data"`
		} `json:"data"`
	}
	switch {
	case key == "":
		return "", &failure{text: "its declaration has no key"}
	case json.Unmarshal(content, &answer) != nil: // the error may quote
		return "", &failure{text: "Vault's answer is not a secret of the KV engine", retryable: true}
	case answer.Data.Data == nil:
		return "", &failure{text: "Vault's answer is not from version 2 of the KV engine: data/ follows the mount in the path", retryable: true}
	}
	return stringOf(answer.Data.Data, key)
}
