package api

import (
	"time"
)

// Requester is the connection that a request came from, as the server names it to the
// engine. The zero value is unknown: somebody in the engine's own account.
type Requester struct {
	Account string    `json:"acc"`
	User    string    `json:"user"`
	Client  uint64    `json:"id"`
	Server  string    `json:"server"`
	Start   time.Time `json:"start"`
}
