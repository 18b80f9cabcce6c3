package sqlreach

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/flowhost/flowhost/run/access"
)

func mysqlEngine(d *dsn, mode access.Mode, config *tls.Config, dial dialer) (*engine, *access.Fault) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.DBName = d.user, d.password, d.database
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(d.host, strconv.Itoa(d.port))
	if d.socket != "" {
		cfg.Net, cfg.Addr = "unix", d.socket
	}
	cfg.DialFunc = dial
	cfg.TLS = config
	cfg.Timeout = d.timeout()
	cfg.Logger = &mysql.NopLogger{}
	cfg.Collation = d.params["collation"]
	cfg.ClientFoundRows = d.params["clientFoundRows"] == "true"
	if d.params["allowCleartextPasswords"] == "true" {
		if config == nil {
			return nil, invalid(`the DSN has allowCleartextPasswords, and the connection has no TLS: leave it out, or write tls { mode = "verify-full" }`)
		}
		cfg.AllowCleartextPasswords = true
	}
	charset := d.params["charset"]
	if charset == "" {
		charset = "utf8mb4"
	}
	if !isName(charset) || cfg.Collation != "" && !isName(cfg.Collation) {
		return nil, invalid("charset or collation of the DSN is no name")
	}
	if err := cfg.Apply(mysql.Charset(charset, cfg.Collation)); err != nil {
		return nil, invalid("charset or collation of the DSN cannot be used")
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, invalid("the settings of the DSN contradict each other")
	}
	statements := []string{"SET SESSION time_zone = '+00:00'"}
	if mode != access.ReadWrite {
		statements = append(statements, "SET SESSION TRANSACTION READ ONLY")
	}
	return &engine{
		connector: setUp{Connector: connector, statements: statements},
		ready:     readyMySQL,
		begin:     beginMySQL, exec: execResult, fault: faultMySQL, form: formMySQL,
		timeArg: func(t time.Time) any { return t.UTC() },
	}, nil
}

func isName(text string) bool {
	for i := range len(text) {
		if !isWord(text[i]) || text[i] >= 0x80 {
			return false
		}
	}
	return text != ""
}

// readyMySQL bounds statements on the server, which does not notice when a client is gone.
// MariaDB and MySQL have different variables, and comments for the other one.
func readyMySQL(ctx context.Context, conn *sql.Conn) error {
	left := leftMS(ctx)
	if left == 0 {
		return conn.PingContext(ctx)
	}
	_, err := conn.ExecContext(ctx, fmt.Sprintf("SET SESSION time_zone = '+00:00' /*M!100101 , max_statement_time = %d.%03d */ /*!50708 , max_execution_time = %d */",
		left/1000, left%1000, left))
	return err
}

func beginMySQL(isolation string, readOnly bool) []string {
	var texts []string
	if isolation != "" {
		texts = append(texts, "SET TRANSACTION ISOLATION LEVEL "+strings.ToUpper(isolation))
	}
	if readOnly {
		return append(texts, "START TRANSACTION READ ONLY")
	}
	return append(texts, "START TRANSACTION READ WRITE")
}

func formMySQL(name string) form {
	switch name {
	case "DATETIME", "TIMESTAMP":
		return formTimestamp
	case "UNSIGNED BIGINT":
		return formInt
	case "BIT", "BINARY", "VARBINARY", "BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "GEOMETRY", "VECTOR":
		return formPlain
	}
	return formText
}

// classes has the SQLSTATE by which errors are judged whose own says nothing.
var classes = map[uint16]string{
	1792: "25006",                               // read-only transaction
	1290: "25006",                               // read-only server, and other options
	1969: "57014", 3024: "57014", 1317: "57014", // maximum time, interrupted
	1205: "40001", 1213: "40001", 1020: "40001", 3572: "55P03", // locks, deadlock, changed record
	1040: "53300", 1203: "53300", 1226: "53300", 1053: "57P01", 1927: "57P01", 1152: "08006", 1158: "08006", 1159: "08006", 1160: "08006", 1161: "08006",
	1021: "53100", 1037: "53200", 1038: "53200", 1041: "53200", // disk, memory
}

func faultMySQL(err error) *access.Fault {
	var own *mysql.MySQLError
	switch {
	case errors.Is(err, mysql.ErrNoTLS):
		return noTLS()
	case errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, mysql.ErrMalformPkt), errors.Is(err, mysql.ErrPktSync):
		return unreachable("the connection to the database broke: another attempt gets a new one")
	case errors.Is(err, mysql.ErrPktTooLarge):
		return &access.Fault{Code: access.CodeTooLarge, Message: "the statement is larger than the server accepts: pass fewer or shorter arguments"}
	case !errors.As(err, &own):
		return nil
	}
	state := string(own.SQLState[:])
	if class, ok := classes[own.Number]; ok {
		state = class
	}
	return server{code: strconv.Itoa(int(own.Number)) + " " + string(own.SQLState[:]), state: state, message: own.Message}.fault()
}
