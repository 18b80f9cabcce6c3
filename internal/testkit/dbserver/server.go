//go:build linux

package dbserver

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Parts of the DSNs of the servers, which no text may contain.
const (
	User     = "flowuser_q"
	Password = "s3cret/p@ss:w?rd&x"
	Database = "flowdata_q"
)

// unprivileged is the user of the servers when the tests run as root, which they refuse.
const unprivileged = 65534

// Server is a database server. Its directory has ca.pem, an authority, cert.pem and key.pem,
// its certificate for the name db.test, and other.pem, an authority that has signed nothing.
type Server struct {
	Dir  string
	Port int

	args []string
	log  string // in a line of its output once it is ready
	cmd  *exec.Cmd
	done chan struct{}
}

// Address is where the server listens.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// PostgresDSN is the DSN of a PostgreSQL server.
func (s *Server) PostgresDSN() string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(User, Password), Host: s.Address(), Path: Database}).String()
}

// MariaDSN is the DSN of a MariaDB server.
func (s *Server) MariaDSN() string {
	return fmt.Sprintf("%s:%s@tcp(%s)/%s", User, Password, s.Address(), Database)
}

// newServer makes the directory of a server, with certificates.
func newServer() (*Server, error) {
	dir, err := os.MkdirTemp("", "flowhost-db-")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir}
	if err = s.prepare(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) prepare() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Port = l.Addr().(*net.TCPAddr).Port
	if err = l.Close(); err != nil {
		return err
	}
	if err = certificates(s.Dir); err != nil {
		return err
	}
	return s.own()
}

// own gives the directory to the user of the server.
func (s *Server) own() error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.Walk(s.Dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, unprivileged, unprivileged)
	})
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), "HOME="+s.Dir, "TMPDIR="+s.Dir, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
	}
	return cmd
}

func (s *Server) run(input, name string, args ...string) error {
	cmd := s.command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// Start starts the server, again after [Server.Kill], and waits until it is ready.
func (s *Server) Start() error {
	s.cmd = s.command(s.args[0], s.args[1:]...)
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err = s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	ready := make(chan struct{})
	var lines strings.Builder
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		seen := false
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			if !seen {
				lines.WriteString(scanner.Text() + "\n")
			}
			if !seen && strings.Contains(scanner.Text(), s.log) {
				seen = true
				close(ready)
			}
		}
		_ = s.cmd.Wait() // it was killed, or its output says why it ended
	}()
	select {
	case <-ready:
		return nil
	case <-s.done:
		return fmt.Errorf("%s ended:\n%s", s.args[0], lines.String())
	}
}

// Kill ends the server as a crash does. Its data stays.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.done
}

// Close ends the server and removes its directory.
func (s *Server) Close() {
	s.Kill()
	_ = os.RemoveAll(s.Dir) // it is a temporary one
}

// StartPostgres starts a PostgreSQL server.
func StartPostgres() (*Server, error) {
	bin := find("postgres", "/usr/lib/postgresql/*/bin/postgres")
	if bin == "" {
		return nil, fmt.Errorf("postgres is missing: apt-get install postgresql")
	}
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	data, password := s.path("data"), s.path("password")
	s.args = []string{bin, "-D", data, "-p", fmt.Sprint(s.Port), "-k", s.Dir, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=60",
		"-c", "ssl=on", "-c", "ssl_cert_file=" + s.path("cert.pem"), "-c", "ssl_key_file=" + s.path("key.pem")}
	s.log = "database system is ready to accept connections"
	return s.first(func() error {
		if err := os.WriteFile(password, []byte(Password), 0o644); err != nil {
			return err
		}
		if err := s.run("", filepath.Join(filepath.Dir(bin), "initdb"), "-D", data, "-U", User, "-A", "scram-sha-256", "--pwfile", password, "-E", "UTF8", "--no-sync"); err != nil {
			return err
		}
		return s.run("CREATE DATABASE "+Database+";\n", bin, "--single", "-D", data, "postgres")
	})
}

// StartMariaDB starts a MariaDB server.
func StartMariaDB() (*Server, error) {
	bin := find("mariadbd", "/usr/sbin/mariadbd")
	install := find("mariadb-install-db", "")
	if bin == "" || install == "" {
		return nil, fmt.Errorf("mariadbd or mariadb-install-db is missing: apt-get install mariadb-server")
	}
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	data, init := s.path("data"), s.path("init.sql")
	s.args = []string{bin, "--no-defaults", "--datadir=" + data, "--port=" + fmt.Sprint(s.Port), "--bind-address=127.0.0.1", "--socket=" + s.path("sock"),
		"--init-file=" + init, "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--skip-name-resolve",
		"--ssl-ca=" + s.path("ca.pem"), "--ssl-cert=" + s.path("cert.pem"), "--ssl-key=" + s.path("key.pem")}
	s.log = "ready for connections"
	return s.first(func() error {
		sql := fmt.Sprintf("CREATE DATABASE IF NOT EXISTS %s;\nCREATE USER IF NOT EXISTS '%s'@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO '%[2]s'@'%%';\n", Database, User, Password)
		if err := os.WriteFile(init, []byte(sql), 0o644); err != nil {
			return err
		}
		return s.run("", install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	})
}

// first installs the server's data and starts it.
func (s *Server) first(install func() error) (*Server, error) {
	err := install()
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) path(name string) string { return filepath.Join(s.Dir, name) }

// find looks for a program by its name, then by a pattern.
func find(name, pattern string) string {
	if path, err := exec.LookPath(name); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
	}
	if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
		return found[len(found)-1]
	}
	return ""
}
