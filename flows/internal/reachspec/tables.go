package reachspec

import (
	"slices"

	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run/access"
)

// types are all types of connections.
var types = []string{access.TypeHTTP, access.TypePostgres, access.TypeMySQL, access.TypeSQLite, access.TypeSMTP}

// Sentences for words of other tools.
const (
	writeBaseURL = "Write base_url = \"https://…\"."
	writeDSN     = "Write dsn = secret.NAME; the secret holds the address with the password."
	writeAuth    = "Credentials of an http connection are in its auth block."
)

// Connection is a connection block. Its arguments are those of all types, see [TypesOf].
var Connection = &lang.Schema{
	Title: "a connection block",
	Arguments: []lang.Argument{
		{Name: "type", Phase: lang.Load, Kind: lang.String, OneOf: types, Required: true, About: "what it leads to"},

		{Name: "base_url", Phase: lang.Load, Kind: lang.String, Default: "none", About: "http, required: beginning of all its URLs"},
		{Name: "allow", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `http, required: what may be requested, ["GET /repos/**"]`},
		{Name: "headers", Phase: lang.Load, Kind: lang.SecretTexts, Default: "none", About: "http: sent with each request"},
		{Name: "redirects", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 0 to 10", Default: "0", About: "http: that are followed, on the same host"},
		{Name: "max_body", Phase: lang.Load, Kind: lang.Size, Bounds: "at most 64MiB", Default: `"16MiB"`, About: "http: size of a response"},
		{Name: "timeout", Phase: lang.Load, Kind: lang.Duration, Default: "what is left of the attempt", About: "http: of one try"},

		{Name: "dsn", Phase: lang.Load, Kind: lang.SecretText, Default: "none", About: "postgres and mysql, required: address of the database"},
		{Name: "path", Phase: lang.Load, Kind: lang.String, Default: "none", About: "sqlite, required: file below the directory of this one"},
		{Name: "access", Phase: lang.Load, Kind: lang.String, OneOf: []string{string(access.ReadOnly), string(access.ReadWrite)}, Default: `"ro"`, About: "databases: whether statements may change data"},
		{Name: "max_open", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 1 to 1000", Default: "8", About: "postgres and mysql: connections at once"},
		{Name: "max_idle", Phase: lang.Load, Kind: lang.Duration, Default: `"5m"`, About: "postgres and mysql: after which an unused connection is closed"},

		{Name: "host", Phase: lang.Load, Kind: lang.String, Default: "none", About: "smtp, required: name of the server"},
		{Name: "port", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 1 to 65535", Default: "587", About: "smtp: port of the server"},
		{Name: "from", Phase: lang.Load, Kind: lang.String, Default: "none", About: "smtp, required: the only sender"},
		{Name: "to", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `smtp, required: recipients, ["ops@example.com", "*@example.org"]`},
		{Name: "user", Phase: lang.Load, Kind: lang.SecretText, Default: "none: without authentication", About: "smtp: with password"},
		{Name: "password", Phase: lang.Own, Kind: lang.Secret, Default: "none", About: "smtp: with user"},
		{Name: "starttls", Phase: lang.Load, Kind: lang.String, OneOf: []string{"required", "none", "implicit"}, Default: `"required"`, About: "smtp: implicit is TLS from the beginning"},

		{Name: "proxy", Phase: lang.Load, Kind: lang.SecretText, Default: "none", About: "URL of an HTTP proxy, which then resolves names"},
		{Name: "private", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `addresses that are not public: ["10.0.0.5:5432"]`},
	},
	Blocks: []lang.Block{
		{Name: "auth", Body: auth, Single: true, About: "http: credentials of requests, of one kind"},
		{Name: "retry", Body: retry, Single: true, About: "http: tries within one operation"},
		{Name: "limit", Body: limit, Single: true, About: "bounds of all calls of the host together"},
		{Name: "tls", Body: tls, Single: true, About: "how the server is recognized"},
	},
	Foreign: map[string]string{
		"url": writeBaseURL, "address": writeBaseURL, "endpoint": writeBaseURL, "uri": writeDSN, "connection_string": writeDSN, "database": writeDSN,
		"token": writeAuth, "api_key": writeAuth, "bearer": writeAuth, "basic": writeAuth, "username": "Write user.",
		"methods": "The methods are in allow: [\"GET,POST /path\"].", "mode": "Write access = \"ro\" or \"rw\"; mode is in the tls block.",
	},
}

// TypesOf are the types of connections that have an argument or block; nil for all types.
var TypesOf = map[string][]string{
	"base_url": {access.TypeHTTP}, "allow": {access.TypeHTTP}, "headers": {access.TypeHTTP}, "redirects": {access.TypeHTTP},
	"max_body": {access.TypeHTTP}, "timeout": {access.TypeHTTP}, "auth": {access.TypeHTTP}, "retry": {access.TypeHTTP},
	"dsn": {access.TypePostgres, access.TypeMySQL}, "path": {access.TypeSQLite},
	"access":   {access.TypePostgres, access.TypeMySQL, access.TypeSQLite},
	"max_open": {access.TypePostgres, access.TypeMySQL}, "max_idle": {access.TypePostgres, access.TypeMySQL},
	"host": {access.TypeSMTP}, "port": {access.TypeSMTP}, "from": {access.TypeSMTP}, "to": {access.TypeSMTP},
	"user": {access.TypeSMTP}, "password": {access.TypeSMTP}, "starttls": {access.TypeSMTP},
	"tls": networked, "proxy": networked, "private": networked,
}

// networked are the types that lead to another machine.
var networked = []string{access.TypeHTTP, access.TypePostgres, access.TypeMySQL, access.TypeSMTP}

// Required are the arguments without which a connection of a type cannot be used.
var Required = map[string][]string{
	access.TypeHTTP: {"base_url", "allow"}, access.TypePostgres: {"dsn"}, access.TypeMySQL: {"dsn"},
	access.TypeSQLite: {"path"}, access.TypeSMTP: {"host", "from", "to"},
}

// Has reports whether connections of a type have an argument or block.
func Has(typ, word string) bool {
	of, limited := TypesOf[word]
	return !limited || slices.Contains(of, typ)
}

var auth = &lang.Schema{
	Title: "an auth block",
	Arguments: []lang.Argument{
		{Name: "bearer", Phase: lang.Own, Kind: lang.Secret, Default: "none", About: "the token: bearer = secret.NAME"},
	},
	Blocks: []lang.Block{
		{Name: access.AuthBasic, Body: authBasic, Single: true, About: "user and password"},
		{Name: access.AuthHeader, Body: authHeader, Single: true, About: "a header with a secret"},
		{Name: access.AuthQuery, Body: authQuery, Single: true, About: "a query parameter with a secret"},
		{Name: access.AuthOAuth2, Body: authOAuth2, Single: true, About: "client credentials, for tokens that the host renews"},
		{Name: access.AuthAWS, Body: authAWS, Single: true, About: "signatures of AWS, version 4"},
	},
}

// Kinds are the kinds of credentials: words of an auth block, of which it has one.
var Kinds = []string{access.AuthBearer, access.AuthBasic, access.AuthHeader, access.AuthQuery, access.AuthOAuth2, access.AuthAWS}

var authBasic = &lang.Schema{
	Title: "a basic block",
	Arguments: []lang.Argument{
		{Name: "user", Phase: lang.Load, Kind: lang.SecretText, Required: true, About: "name of the user"},
		{Name: "password", Phase: lang.Own, Kind: lang.Secret, Required: true, About: "secret.NAME"},
	},
}

var authHeader = namedCredential("a header block", "of the header: X-Api-Key")

var authQuery = namedCredential("a query block", "of the query parameter")

func namedCredential(title, name string) *lang.Schema {
	return &lang.Schema{
		Title: title,
		Arguments: []lang.Argument{
			{Name: "name", Phase: lang.Load, Kind: lang.String, Required: true, About: name},
			{Name: "value", Phase: lang.Own, Kind: lang.Secret, Required: true, About: "secret.NAME"},
		},
	}
}

var authOAuth2 = &lang.Schema{
	Title: "an oauth2 block",
	Arguments: []lang.Argument{
		{Name: "token_url", Phase: lang.Load, Kind: lang.String, Required: true, About: "where tokens are requested"},
		{Name: "client_id", Phase: lang.Load, Kind: lang.SecretText, Required: true, About: "of the client"},
		{Name: "client_secret", Phase: lang.Own, Kind: lang.Secret, Required: true, About: "secret.NAME"},
		{Name: "scopes", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: "that are requested"},
		{Name: "audience", Phase: lang.Load, Kind: lang.String, Default: "none", About: "that is requested"},
	},
}

var authAWS = &lang.Schema{
	Title: "an aws_sigv4 block",
	Arguments: []lang.Argument{
		{Name: "region", Phase: lang.Load, Kind: lang.String, Required: true, About: "of the service: eu-central-1"},
		{Name: "service", Phase: lang.Load, Kind: lang.String, Required: true, About: "name of the service: s3"},
		{Name: "access_key", Phase: lang.Load, Kind: lang.SecretText, Required: true, About: "id of the key"},
		{Name: "secret_key", Phase: lang.Own, Kind: lang.Secret, Required: true, About: "secret.NAME"},
		{Name: "session_token", Phase: lang.Own, Kind: lang.Secret, Default: "none", About: "of temporary credentials: secret.NAME"},
	},
}

var retry = &lang.Schema{
	Title: "a connection's retry block",
	Arguments: []lang.Argument{
		{Name: "attempts", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 1 to 10", Default: "1", About: "tries in all, of idempotent requests only"},
		{Name: "delay", Phase: lang.Load, Kind: lang.Duration, Default: `"200ms"`, About: "before the second try, doubled each time"},
	},
}

var limit = &lang.Schema{
	Title: "a connection's limit block",
	Arguments: []lang.Argument{
		{Name: "concurrency", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 1 to 10000", Default: "16", About: "operations under way at once"},
		{Name: "rate", Phase: lang.Load, Kind: lang.String, Default: "none", About: `operations that start in any such time: "50/s"`},
	},
}

var tls = &lang.Schema{
	Title: "a tls block",
	Arguments: []lang.Argument{
		{Name: "ca", Phase: lang.Load, Kind: lang.String, Default: "the system's", About: "PEM file of the authorities that are trusted"},
		{Name: "cert", Phase: lang.Load, Kind: lang.String, Default: "none", About: "PEM file of the host's own certificate; with key"},
		{Name: "key", Phase: lang.Load, Kind: lang.String, Default: "none", About: "PEM file of its key"},
		{Name: "server_name", Phase: lang.Load, Kind: lang.String, Default: "the name in the address", About: "name in the server's certificate"},
		{Name: "mode", Phase: lang.Load, Kind: lang.String, OneOf: []string{access.TLSVerifyFull, access.TLSRequire, access.TLSDisable}, Default: `"verify-full"`, About: "databases: require encrypts, whoever answers"},
	},
}

// Secret is a secret block.
var Secret = &lang.Schema{
	Title: "a secret block",
	Arguments: []lang.Argument{
		{Name: "env", Phase: lang.Load, Kind: lang.String, Default: "none", About: "environment variable of the host; exactly one of env, file, age, vault"},
		{Name: "file", Phase: lang.Load, Kind: lang.String, Default: "none", About: "file whose content it is"},
		{Name: "age", Phase: lang.Load, Kind: lang.String, Default: "none", About: "file encrypted by age, an object of strings; with key"},
		{Name: "vault", Phase: lang.Load, Kind: lang.String, Default: "none", About: `secret of Vault or OpenBao: "kv/data/stripe"; with key`},
		{Name: "key", Phase: lang.Load, Kind: lang.String, Default: "none", About: "name in the object of age or vault"},
	},
	Foreign: map[string]string{
		"value": writeSource, "default": writeSource, "path": "Write file = \"…\".",
	},
}

const writeSource = "A value is not written into flow files: state where it is, with env, file, age or vault."

// sources are the words of a secret block that state where it is.
var sources = []string{"env", "file", "age", "vault"}

// Sources are these words, of which a secret has one.
func Sources() []string { return slices.Clone(sources) }

// Keyed reports whether a source holds several secrets, by key.
func Keyed(source string) bool { return source == "age" || source == "vault" }

// Grant is a grant block.
var Grant = &lang.Schema{
	Title: "a grant block",
	Arguments: []lang.Argument{
		{Name: "connections", Phase: lang.Own, Kind: lang.Connections, Default: "none", About: "named ways out: [connection.github]"},
		{Name: "files", Phase: lang.Load, Kind: lang.StringMap, Default: "none", About: `directories, each "ro" or "rw": { "./data" = "ro" }`},
		{Name: "kv", Phase: lang.Load, Kind: lang.StringMap, Default: "none", About: `buckets of keys and values: { counters = "rw" }`},
		{Name: "publish", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `subjects on NATS to publish to: ["orders.priced.*"]`},
		{Name: "request", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `subjects on NATS to send requests to: ["pricing.v2.*"]`},
		{Name: "secrets", Phase: lang.Own, Kind: lang.Secrets, Default: "none", About: "handed to the guest: { token = secret.NAME }; prefer a connection"},
		{Name: "env", Phase: lang.Load, Kind: lang.StringMap, Default: "none", About: "environment variables of the guest: { REGION = var.region }"},
		{Name: "clock", Phase: lang.Load, Kind: lang.String, OneOf: clocks, Default: `"virtual"`, About: "the time that the guest sees"},
		{Name: "random", Phase: lang.Load, Kind: lang.String, OneOf: clocks, Default: `"virtual"`, About: "the random numbers that the guest sees"},
		{Name: "artifacts", Phase: lang.Load, Kind: lang.Bool, Default: "false", About: "outputs and inputs larger than a message"},
	},
	Blocks: []lang.Block{{Name: "http", Body: http, Single: true, About: "requests without credentials"}},
}

// Examples are lines of a grant block, by the word of each kind: what to write for a guest that
// wants it.
var Examples = map[string]string{
	"connections": `connections = [connection.NAME]`,
	"files":       `files = { "./data" = "ro" }`,
	"http":        `http { allow = ["GET https://example.com/data/**"] }`,
	"kv":          `kv = { counters = "rw" }`,
	"publish":     `publish = ["orders.priced.*"]`,
	"request":     `request = ["pricing.v2.*"]`,
	"secrets":     `secrets = { token = secret.NAME }`,
	"env":         `env = { REGION = "eu" }`,
	"clock":       `clock = "real"`,
	"random":      `random = "real"`,
	"artifacts":   `artifacts = true`,
}

// clocks are the sources of time and random numbers: one that can be repeated, and the
// machine's.
var clocks = []string{"virtual", access.Real}

var http = &lang.Schema{
	Title: "an http block",
	Arguments: []lang.Argument{
		{Name: "allow", Phase: lang.Load, Kind: lang.Strings, Required: true, About: `what may be requested: ["GET https://example.com/data/**"]`},
		{Name: "private", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `addresses that are not public: ["10.0.0.5:80"]`},
		{Name: "redirects", Phase: lang.Load, Kind: lang.Integer, Bounds: "from 0 to 10", Default: "0", About: "that are followed, each checked as the first request"},
		{Name: "max_body", Phase: lang.Load, Kind: lang.Size, Bounds: "at most 64MiB", Default: `"16MiB"`, About: "size of a response"},
	},
}

// Settings is what a host's settings have of this language.
var Settings = &lang.Schema{
	Title: "a settings file",
	Blocks: []lang.Block{
		{Name: "connection", Labels: []string{"name"}, Body: Connection, About: "a named way out, for all flows that are granted it"},
		{Name: "secret", Labels: []string{"name"}, Body: Secret, About: "where a secret of the host's connections is"},
		{Name: "allow", Labels: []string{"flows"}, Body: Allow, About: "a bound on the grants of flows, by a pattern of their names"},
	},
}

// Allow is an allow block: the keys of a grant, with names as strings.
var Allow = &lang.Schema{
	Title: "an allow block",
	Arguments: []lang.Argument{
		{Name: "connections", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `by name: ["github"]; ["*"] is all`},
		{Name: "files", Phase: lang.Load, Kind: lang.StringMap, Default: "none", About: `directories below that of the flow file: { "." = "ro" } is all of them`},
		{Name: "kv", Phase: lang.Load, Kind: lang.StringMap, Default: "none", About: `buckets: { counters = "rw" }; { "*" = "ro" } is all of them`},
		{Name: "publish", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: "subjects on NATS"},
		{Name: "request", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: "subjects on NATS"},
		{Name: "secrets", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `that may be handed to guests: ["token"]; ["*"] is all`},
		{Name: "env", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `environment variables of guests: ["REGION"]; ["*"] is all`},
		{Name: "private", Phase: lang.Load, Kind: lang.Strings, Default: "none", About: `addresses of connections of flow files: ["10.0.0.5:5432"]`},
		{Name: "clock", Phase: lang.Load, Kind: lang.String, OneOf: clocks, Default: `"virtual"`, About: "real allows the machine's clock"},
		{Name: "random", Phase: lang.Load, Kind: lang.String, OneOf: clocks, Default: `"virtual"`, About: "real allows the machine's random numbers"},
		{Name: "artifacts", Phase: lang.Load, Kind: lang.Bool, Default: "false", About: "outputs and inputs larger than a message"},
	},
	Blocks: []lang.Block{
		{Name: "http", Body: http, Single: true, About: "requests without credentials"},
		{Name: "sources", Body: allowSources, Single: true, About: "where the secrets of flow files may be"},
	},
}
