package access

import "slices"

// Policy is what decides on the operations of a call: the grant of its flow and what the
// operator allows that flow. An operation needs both.
type Policy struct {
	Grants Grants `json:"grants"`
	Allow  *Allow `json:"allow,omitempty"` // nil: the operator has written no allow block, and the grant decides
}

// Allow is an operator's bound on the grants of flows, allow "PATTERN" { … }. A field or
// entry that is absent is denied. Connections, secrets and variables are named, or all by
// "*".
type Allow struct {
	Pattern     string          `json:"pattern"` // names of flows; * is any part of a name
	Connections []string        `json:"connections,omitempty"`
	HTTP        *HTTPGrant      `json:"http,omitempty"`
	Files       map[string]Mode `json:"files,omitempty"` // by path below the flow's directory; what is below is included
	KV          map[string]Mode `json:"kv,omitempty"`    // "*" is any bucket
	Publish     []string        `json:"publish,omitempty"`
	Request     []string        `json:"request,omitempty"`
	Secrets     []string        `json:"secrets,omitempty"` // that may be handed to guests
	Sources     *Sources        `json:"sources,omitempty"` // of secrets in flow files
	Env         []string        `json:"env,omitempty"`
	Private     []string        `json:"private,omitempty"` // of connections in flow files, ADDRESS:PORT
	Clock       string          `json:"clock,omitempty"`
	Random      string          `json:"random,omitempty"`
	Artifacts   bool            `json:"artifacts,omitempty"`
	From        string          `json:"-"` // where it is written, "flowhost.hcl:12"
}

// Always returns the policy: it is one that does not change, for sessions that ask for that of
// each operation.
func (p Policy) Always() Policy { return p }

// Names reports whether a list has a name, or all.
func Names(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, "*")
}

// Includes reports whether a mode allows what another one does.
func (m Mode) Includes(other Mode) bool {
	return m == ReadWrite && other != "" || m == ReadOnly && other == ReadOnly
}
