package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// SeparateAccounts gives the name of the account that a second connection is in. It
// fails when that is the engine's own, which would protect nothing.
func SeparateAccounts(ctx context.Context, engine, app *nats.Conn) (string, error) {
	theirs, err := accountOf(ctx, app)
	if err != nil {
		return "", fmt.Errorf("account of the second connection: %w", err)
	}
	ours, err := accountOf(ctx, engine)
	if err != nil {
		return "", fmt.Errorf("account of the engine: %w", err)
	}
	if ours == theirs {
		return "", fmt.Errorf("both connections are in the NATS account %s: give the second one a user of another account, or leave app_creds out", ours)
	}
	return theirs, nil
}

// accountOf asks the server. A server without accounts has one for all.
func accountOf(ctx context.Context, nc *nats.Conn) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	if err != nil {
		return "", err
	}
	var info struct {
		Data struct {
			Account string `json:"account"`
		} `json:"data"`
	}
	if err := json.Unmarshal(reply.Data, &info); err != nil {
		return "", err
	}
	if info.Data.Account == "" {
		return "", errors.New("the server does not report it")
	}
	return info.Data.Account, nil
}
