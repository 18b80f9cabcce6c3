package sqlreach

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// dsn is what a DSN says, in whichever form.
type dsn struct {
	user, password string
	host           string // empty with a socket
	port           int
	socket         string // absolute path
	database       string
	params         map[string]string
}

// parseDSN reads the DSN of a server. Its faults repeat nothing of the text: what looks
// like a parameter may be a password with a special character.
func parseDSN(kind, text string) (*dsn, *access.Fault) {
	d := &dsn{params: map[string]string{}}
	scheme, _, isURL := strings.Cut(text, "://")
	ok := false
	switch {
	case isURL && slices.Contains(schemes[kind], strings.ToLower(scheme)):
		ok = d.parseURL(text)
	case kind == access.TypePostgres:
		ok = d.parsePairs(text)
	default:
		ok = d.parseDriverForm(text)
	}
	if ok && d.port == 0 {
		d.port = map[string]int{access.TypePostgres: 5432, access.TypeMySQL: 3306}[kind]
	}
	switch {
	case !ok || strings.ContainsRune(text, 0):
		return nil, invalid("the DSN cannot be read: write it as %s, with special characters of the password percent-encoded", schemes[kind][0]+"://USER:PASSWORD@HOST:PORT/DATABASE")
	case d.host == "" && d.socket == "":
		return nil, invalid("the DSN has no host: write it as %s", schemes[kind][0]+"://USER:PASSWORD@HOST:PORT/DATABASE")
	case strings.Contains(d.host, ","):
		return nil, invalid("the DSN has several hosts: name one, or declare a connection for each")
	case d.user == "":
		return nil, invalid("the DSN has no user: the host does not use its own name")
	}
	return d, d.checkParams(kind)
}

var schemes = map[string][]string{
	access.TypePostgres: {"postgres", "postgresql"},
	access.TypeMySQL:    {"mysql", "mariadb"},
}

// parameter is what happens to a parameter of a DSN.
type parameter int

const (
	refused parameter = iota
	used
	ignored // the host decides
)

// parameters lists those that are not refused, and those that are refused with a name.
var parameters = map[string]map[string]parameter{
	access.TypePostgres: {
		"application_name": used, "search_path": used, "timezone": used, "connect_timeout": used, "sslmode": used,
		"client_encoding": ignored, "target_session_attrs": ignored,
		"options": refused, "service": refused, "servicefile": refused, "passfile": refused, "hostaddr": refused,
		"sslcert": refused, "sslkey": refused, "sslrootcert": refused, "sslpassword": refused,
		"default_transaction_read_only": refused, "role": refused, "session_authorization": refused,
	},
	access.TypeMySQL: {
		"charset": used, "collation": used, "clientFoundRows": used, "allowCleartextPasswords": used, "tls": used, "timeout": used,
		"parseTime": ignored, "loc": ignored, "multiStatements": ignored, "interpolateParams": ignored, "readTimeout": ignored,
		"writeTimeout": ignored, "maxAllowedPacket": ignored, "columnsWithAlias": ignored, "checkConnLiveness": ignored,
		"allowAllFiles": refused, "allowFallbackToPlaintext": refused, "allowOldPasswords": refused, "serverPubKey": refused,
		"init_connect": refused, "sql_mode": refused, "tx_read_only": refused, "transaction_read_only": refused, "strict": refused,
	},
}

func (d *dsn) checkParams(kind string) *access.Fault {
	for name, value := range d.params {
		what, known := parameters[kind][name]
		switch {
		case !known:
			return invalid("the DSN has a parameter that is not supported: leave it out (supported are %s)", supported(kind))
		case what == refused && strings.HasPrefix(name, "ssl"):
			return invalid("the DSN has the parameter %s: name the file in the connection's tls block", name)
		case what == refused && (name != "allowAllFiles" && name != "allowFallbackToPlaintext" && name != "allowOldPasswords" || value != "false"):
			return invalid("the DSN has the parameter %s, which would lead around what the connection declares: leave it out", name)
		}
	}
	return nil
}

func supported(kind string) string {
	var names []string
	for name, what := range parameters[kind] {
		if what == used {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (d *dsn) parseURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" {
		return false
	}
	d.user = u.User.Username()
	d.password, _ = u.User.Password()
	d.host = u.Hostname()
	d.database = strings.TrimPrefix(u.Path, "/")
	if !d.setPort(u.Port()) {
		return false
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return false
	}
	for name, values := range query {
		if len(values) != 1 || !d.set(name, values[0]) {
			return false
		}
	}
	return true
}

// set takes a parameter of PostgreSQL's URLs and pairs.
func (d *dsn) set(name, value string) bool {
	switch name {
	case "user":
		d.user = value
	case "password":
		d.password = value
	case "dbname", "database":
		d.database = value
	case "port":
		return d.setPort(value)
	case "host":
		d.host, d.socket = value, ""
		if strings.HasPrefix(value, "/") {
			d.host, d.socket = "", value
		}
	default:
		d.params[name] = value
	}
	return true
}

func (d *dsn) setPort(text string) bool {
	if text == "" {
		return true
	}
	port, err := strconv.ParseUint(text, 10, 16)
	d.port = int(port)
	return err == nil && port > 0
}

// parsePairs reads PostgreSQL's key = value form.
func (d *dsn) parsePairs(text string) bool {
	for {
		text = strings.TrimLeft(text, " \t\r\n")
		if text == "" {
			return true
		}
		name, rest, ok := strings.Cut(text, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n'\\") {
			return false
		}
		value, rest, ok := pairValue(strings.TrimLeft(rest, " \t\r\n"))
		if !ok || !d.set(name, value) {
			return false
		}
		text = rest
	}
}

// pairValue reads a value, quoted or not, with backslashes.
func pairValue(text string) (value, rest string, ok bool) {
	quoted := strings.HasPrefix(text, "'")
	at := 0
	if quoted {
		at = 1
	}
	var b strings.Builder
	for ; at < len(text); at++ {
		switch c := text[at]; {
		case c == '\\' && at+1 < len(text):
			at++
			b.WriteByte(text[at])
		case c == '\\':
			return "", "", false
		case quoted && c == '\'':
			return b.String(), text[at+1:], true
		case !quoted && (c == ' ' || c >= '\t' && c <= '\r'):
			return b.String(), text[at:], true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", !quoted
}

// parseDriverForm reads USER:PASSWORD@NETWORK(ADDRESS)/DATABASE?PARAMETERS, the form of
// MySQL's Go driver, in which a password may have every character but the last slash.
func (d *dsn) parseDriverForm(text string) bool {
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return false
	}
	left, right := text[:slash], text[slash+1:]
	address := left
	if at := strings.LastIndexByte(left, '@'); at >= 0 {
		d.user, d.password, _ = strings.Cut(left[:at], ":")
		address = left[at+1:]
	}
	network, address, ok := strings.Cut(address, "(")
	if !ok || !strings.HasSuffix(address, ")") {
		return false
	}
	address = strings.TrimSuffix(address, ")")
	switch network {
	case "unix":
		d.socket = address
	case "tcp", "":
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			host, port = strings.Trim(address, "[]"), ""
		}
		d.host = host
		if !d.setPort(port) {
			return false
		}
	default:
		return false
	}
	name, query, _ := strings.Cut(right, "?")
	database, err := url.PathUnescape(name)
	values, errQuery := url.ParseQuery(query)
	if err != nil || errQuery != nil {
		return false
	}
	d.database = database
	for name, v := range values {
		if len(v) != 1 {
			return false
		}
		d.params[name] = v[0]
	}
	return true
}

// local reports whether the server is on this machine by its address.
func (d *dsn) local() bool {
	if d.socket != "" || d.host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(d.host)
	return err == nil && address.IsLoopback()
}

// parts are the texts that no message may contain.
func (d *dsn) parts(text string) []string {
	port := strconv.Itoa(int(d.port))
	return []string{text, d.user, d.password, d.host, d.socket, d.database, ":" + port, "port " + port, "port=" + port}
}

// connectTimeout is how long a connection may take to open, for those who set nothing.
const connectTimeout = 10 * time.Second

func (d *dsn) timeout() time.Duration {
	if seconds, err := strconv.Atoi(d.params["connect_timeout"]); err == nil && seconds > 0 {
		return min(time.Duration(seconds)*time.Second, time.Minute)
	}
	if t, err := time.ParseDuration(d.params["timeout"]); err == nil && t > 0 {
		return min(t, time.Minute)
	}
	return connectTimeout
}
