package access

// Mode is what may be done with a bucket, a database or a directory.
type Mode string

// Modes.
const (
	ReadOnly  Mode = "ro"
	ReadWrite Mode = "rw"
)

// Real is the source of time or random numbers that cannot be repeated. Default: a virtual
// one.
const Real = "real"

// Grants is what a call may reach, beside files. Absent means denied, for each field and for
// each entry.
type Grants struct {
	Connections []string          `json:"connections,omitempty"` // by name, sorted
	HTTP        *HTTPGrant        `json:"http,omitempty"`        // without credentials
	KV          map[string]Mode   `json:"kv,omitempty"`          // by bucket
	Publish     []string          `json:"publish,omitempty"`     // subjects, which may have wildcards
	Request     []string          `json:"request,omitempty"`     // likewise
	Secrets     map[string]string `json:"secrets,omitempty"`     // the guest's name → name of the secret
	Env         map[string]string `json:"env,omitempty"`
	Clock       string            `json:"clock,omitempty"`  // "" or Real
	Random      string            `json:"random,omitempty"` // "" or Real
	Artifacts   bool              `json:"artifacts,omitempty"`
}

// HTTPGrant allows requests without credentials.
type HTTPGrant struct {
	Allow     []string `json:"allow"`               // rules, METHOD[,METHOD] scheme://host[:port]/path
	Private   []string `json:"private,omitempty"`   // addresses that are not public, ADDRESS:PORT
	Redirects int      `json:"redirects,omitempty"` // that are followed
	MaxBody   int64    `json:"max_body,omitempty"`  // bytes of a response; default DefaultBody
}

// Bounds of one HTTP response.
const (
	DefaultBody  = 16 << 20
	MaxBody      = 64 << 20
	MaxRedirects = 10
)

// IsZero reports whether nothing is granted.
func (g *Grants) IsZero() bool {
	return len(g.Connections) == 0 && g.HTTP == nil && len(g.KV) == 0 && len(g.Publish) == 0 && len(g.Request) == 0 &&
		len(g.Secrets) == 0 && len(g.Env) == 0 && g.Clock == "" && g.Random == "" && !g.Artifacts
}
