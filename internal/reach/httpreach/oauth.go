package httpreach

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

const (
	maxTokens      = 256
	maxTokenAnswer = 64 << 10
	tokenLifetime  = 5 * time.Minute // of a token whose server does not say
	tokenMargin    = 30 * time.Second
)

// token is an access token of the client credentials grant (RFC 6749, section 4.4).
type token struct {
	busy    chan struct{} // holds one value while a caller reads or fetches the token
	value   string
	expires time.Time
}

// tokens keeps them by connection and by the values of its secrets.
type tokens struct {
	mu    sync.Mutex
	table map[[sha256.Size]byte]*token
}

func (all *tokens) of(key [sha256.Size]byte) *token {
	all.mu.Lock()
	defer all.mu.Unlock()
	t := all.table[key]
	if t != nil {
		return t
	}
	if all.table == nil || len(all.table) >= maxTokens {
		all.table = map[[sha256.Size]byte]*token{} // they are only fetched again
	}
	t = &token{busy: make(chan struct{}, 1)}
	all.table[key] = t
	return t
}

// useToken gives the credential a token that is valid and not the refused one.
func (x *exchange) useToken(ctx context.Context, refused string) error {
	auth := x.connection.HTTP.Auth
	parts := []any{x.lane.key[:], auth, x.credential.clientID, x.credential.secret}
	text, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	t := x.client.tokens.of(sha256.Sum256(text))
	select {
	case t.busy <- struct{}{}:
		defer func() { <-t.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.value == "" || t.value == refused || !x.client.now().Before(t.expires) {
		t.value = ""
		if err := x.fetchToken(ctx, auth, t); err != nil {
			return err
		}
	}
	x.credential.token = t.value
	x.credential.values = append(x.credential.values, t.value)
	x.echoes = newEchoes(x.credential.values)
	return nil
}

// fetchToken asks the token server, under the policy of the connection.
func (x *exchange) fetchToken(ctx context.Context, auth *access.Auth, t *token) error {
	from := x.permit.tokenURL
	if err := x.permit.guard.checkLiteral(hostPort(from.Host, from.Port)); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(withTry(ctx), http.MethodPost, from.URL(), strings.NewReader(tokenForm(auth)))
	if err != nil {
		return err
	}
	// RFC 6749, section 2.3.1, has both encoded.
	request.SetBasicAuth(url.QueryEscape(x.credential.clientID), url.QueryEscape(x.credential.secret))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "flowhost")
	response, err := x.lane.transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxTokenAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return x.tokenFault(response.StatusCode, strconv.Itoa(response.StatusCode)+": check client_id, client_secret and scopes")
	}
	value, lifetime, ok := parseToken(body)
	if !ok {
		return x.tokenFault(response.StatusCode, "without a bearer token")
	}
	t.value, t.expires = value, x.client.now().Add(lifetime-min(tokenMargin, lifetime/2))
	return nil
}

func tokenForm(auth *access.Auth) string {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(auth.Scopes) > 0 {
		form.Set("scope", strings.Join(auth.Scopes, " "))
	}
	if auth.Audience != "" {
		form.Set("audience", auth.Audience)
	}
	return form.Encode()
}

// parseToken reads the answer of RFC 6749, section 5.1.
func parseToken(body []byte) (value string, lifetime time.Duration, ok bool) {
	var answer struct {
		Token   string      `json:"access_token"`
		Type    string      `json:"token_type"`
		Expires json.Number `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Token == "" || !isHeaderValue(answer.Token) || !strings.EqualFold(answer.Type, "bearer") {
		return "", 0, false
	}
	if seconds, err := answer.Expires.Int64(); err == nil && seconds > 0 {
		return answer.Token, time.Duration(min(seconds, 24*60*60)) * time.Second, true
	}
	return answer.Token, tokenLifetime, true
}

func (x *exchange) tokenFault(status int, what string) error {
	name := describe(http.MethodPost, x.permit.tokenURL)
	return &access.Fault{
		Code:      access.CodeRefused,
		Message:   name + " failed: the token server of connection " + x.connection.Name + " answered " + what,
		Target:    name,
		Detail:    strconv.Itoa(status),
		Retryable: status >= 500 || status == http.StatusTooManyRequests,
	}
}
