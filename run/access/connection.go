package access

import "time"

// Types of connections.
const (
	TypeHTTP     = "http"
	TypePostgres = "postgres"
	TypeMySQL    = "mysql"
	TypeSQLite   = "sqlite"
	TypeSMTP     = "smtp"
)

// Connection is a named way out whose credentials stay in the host. Exactly one of HTTP,
// SQL and SMTP is set, according to the type.
type Connection struct {
	Name string
	Type string

	HTTP *HTTPConnection
	SQL  *SQLConnection
	SMTP *SMTPConnection

	TLS     *TLS
	Proxy   *Value   // URL of an HTTP proxy, whose host is contacted instead; nil: none. Never from the environment
	Private []string // addresses that are not public, ADDRESS:PORT
	Limit   Limit

	// Operator is set for a connection of the host's settings: it may lead to private
	// addresses.
	Operator bool
	Folder   string // absolute path of the directory of its file
}

// Value is a text, or the handle of a secret that is resolved when the text is needed.
type Value struct {
	Text   string `json:"text,omitempty"`
	Secret string `json:"secret,omitempty"`
}

// HTTPConnection is a web API.
type HTTPConnection struct {
	BaseURL   string
	Allow     []string // rules, METHOD[,METHOD] /path, below BaseURL's path
	Headers   map[string]Value
	Auth      *Auth
	Redirects int   // that are followed, within the base URL's origin; default none
	MaxBody   int64 // bytes of a response; default DefaultBody
	Retry     *Retry
	Timeout   time.Duration // of one try; default: what is left of the attempt
}

// Kinds of credentials of an HTTPConnection.
const (
	AuthBasic  = "basic"
	AuthBearer = "bearer"
	AuthHeader = "header"
	AuthQuery  = "query"
	AuthOAuth2 = "oauth2"    // client credentials
	AuthAWS    = "aws_sigv4" //
)

// Auth is how requests prove who they come from.
type Auth struct {
	Kind string

	User, Password Value  // basic
	Token          Value  // bearer
	Name           string // of the header or query parameter
	Value          Value

	TokenURL               string // oauth2
	ClientID, ClientSecret Value
	Scopes                 []string
	Audience               string

	AccessKey, SecretKey, SessionToken Value // aws_sigv4
	Region, Service                    string
}

// Retry is how often one operation tries again by itself.
type Retry struct {
	Attempts int           // in all; default 1
	Delay    time.Duration // before the second, doubled each time; default 200ms
}

// Limit bounds the use of a connection by all calls of the host.
type Limit struct {
	Concurrency int     // operations at once; default DefaultConcurrency
	Rate        float64 // operations per second; 0: unbounded
	Burst       int     // with Rate
}

// DefaultConcurrency is how many operations of a connection are under way at once.
const DefaultConcurrency = 16

// SQLConnection is a database.
type SQLConnection struct {
	DSN     Value  // postgres, mysql: as a URL or in the driver's form
	Path    string // sqlite: relative to the directory of the file, with slashes
	Access  Mode
	MaxOpen int           // connections at once; default DefaultMaxOpen
	MaxIdle time.Duration // after which an unused connection is closed; default 5m
}

// DefaultMaxOpen is how many connections to a database are open at once.
const DefaultMaxOpen = 8

// DefaultMailPort is the one for submission (RFC 6409).
const DefaultMailPort = 587

// SMTPConnection is a mail server.
type SMTPConnection struct {
	Host           string
	Port           int      // default DefaultMailPort
	From           string   // the only sender
	To             []string // recipients that may be addressed: an address, or *@domain; required
	User, Password Value    // both empty: no authentication
	StartTLS       string   // "required" (default), "none", or "implicit" for TLS from the start
}

// Modes of a database's TLS.
const (
	TLSDisable    = "disable"
	TLSRequire    = "require"     // encrypted, whoever answers
	TLSVerifyFull = "verify-full" // the default
)

// TLS is how a server is recognized and what the host shows it. Paths are relative to the
// directory of the connection's file.
type TLS struct {
	CA         string // PEM file; default: the system's
	Cert, Key  string // PEM files of the host's own certificate
	ServerName string
	Mode       string // of databases; default TLSVerifyFull
}

// Secret is where the value of a secret is. Exactly one of Env, File, Age and Vault is set.
type Secret struct {
	Name   string
	Env    string // environment variable of the host
	File   string // path, relative to the directory of its file
	Age    string // path of a file encrypted by age, likewise; holds an object of texts
	Vault  string // path of a KV v2 secret, "kv/data/stripe"
	Key    string // of the object in Age or Vault
	Folder string // absolute path of the directory of its file

	Operator bool // it is of the host's settings
}
