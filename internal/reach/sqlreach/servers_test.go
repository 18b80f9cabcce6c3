//go:build databases && linux

package sqlreach_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Parts of the DSNs of the servers, which no text may contain.
const (
	user     = "flowuser_q"
	password = "s3cret/p@ss:w?rd&x"
	database = "flowdata_q"
)

// unprivileged is the user of the servers when the tests run as root, which they refuse.
const unprivileged = 65534

// server is a database server that the tests have started.
type server struct {
	dir  string
	port int
	args []string
	log  string // in a line of the log once it is ready
	cmd  *exec.Cmd
	done chan struct{}
}

var (
	postgresServer = sync.OnceValues(startPostgres)
	mariaServer    = sync.OnceValues(startMariaDB)
	servers        struct {
		sync.Mutex
		all []*server
	}
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range servers.all {
		s.kill()
		_ = os.RemoveAll(s.dir)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// shared is a server that several tests use.
func shared(t testing.TB, start func() (*server, error)) *server {
	t.Helper()
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newServer makes the directory of a server, with certificates.
func newServer() (*server, error) {
	dir, err := os.MkdirTemp("", "flowhost-db-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	servers.Lock()
	servers.all = append(servers.all, s)
	servers.Unlock()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	if err = l.Close(); err != nil {
		return nil, err
	}
	if err = certificates(dir); err != nil {
		return nil, err
	}
	return s, s.own()
}

// own gives the directory to the user of the server.
func (s *server) own() error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.Walk(s.dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, unprivileged, unprivileged)
	})
}

func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "TMPDIR="+s.dir, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
	}
	return cmd
}

func (s *server) run(input, name string, args ...string) error {
	cmd := s.command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// start starts the server and waits for its word that it is ready.
func (s *server) start() error {
	s.cmd = s.command(s.args[0], s.args[1:]...)
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err = s.cmd.Start(); err != nil {
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
		_ = s.cmd.Wait()
	}()
	select {
	case <-ready:
		return nil
	case <-s.done:
		return fmt.Errorf("%s ended:\n%s", s.args[0], lines.String())
	}
}

// kill ends the server as a crash does.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.done
}

func startPostgres() (*server, error) {
	bin := find("postgres", "/usr/lib/postgresql/*/bin/postgres")
	if bin == "" {
		return nil, fmt.Errorf("postgres is missing: apt-get install postgresql")
	}
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	if err = os.WriteFile(filepath.Join(s.dir, "password"), []byte(password), 0o644); err != nil {
		return nil, err
	}
	if err = s.run("", filepath.Join(filepath.Dir(bin), "initdb"), "-D", data, "-U", user, "-A", "scram-sha-256", "--pwfile", filepath.Join(s.dir, "password"), "-E", "UTF8", "--no-sync"); err != nil {
		return nil, err
	}
	if err = s.run("CREATE DATABASE "+database+";\n", bin, "--single", "-D", data, "postgres"); err != nil {
		return nil, err
	}
	s.args = []string{bin, "-D", data, "-p", fmt.Sprint(s.port), "-k", s.dir, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=60",
		"-c", "ssl=on", "-c", "ssl_cert_file=" + filepath.Join(s.dir, "cert.pem"), "-c", "ssl_key_file=" + filepath.Join(s.dir, "key.pem")}
	s.log = "database system is ready to accept connections"
	return s, s.start()
}

func startMariaDB() (*server, error) {
	bin := find("mariadbd", "/usr/sbin/mariadbd")
	install := find("mariadb-install-db", "")
	if bin == "" || install == "" {
		return nil, fmt.Errorf("mariadbd or mariadb-install-db is missing: apt-get install mariadb-server")
	}
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	if err = s.run("", install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db"); err != nil {
		return nil, err
	}
	sql := fmt.Sprintf("CREATE DATABASE IF NOT EXISTS %s;\nCREATE USER IF NOT EXISTS '%s'@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO '%[2]s'@'%%';\n", database, user, password)
	if err = os.WriteFile(filepath.Join(s.dir, "init.sql"), []byte(sql), 0o644); err != nil {
		return nil, err
	}
	s.args = []string{bin, "--no-defaults", "--datadir=" + data, "--port=" + fmt.Sprint(s.port), "--bind-address=127.0.0.1", "--socket=" + filepath.Join(s.dir, "sock"),
		"--init-file=" + filepath.Join(s.dir, "init.sql"), "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--skip-name-resolve",
		"--ssl-ca=" + filepath.Join(s.dir, "ca.pem"), "--ssl-cert=" + filepath.Join(s.dir, "cert.pem"), "--ssl-key=" + filepath.Join(s.dir, "key.pem")}
	s.log = "ready for connections"
	return s, s.start()
}

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

// certificates writes an authority and a certificate for the name db.test.
func certificates(dir string) error {
	make := func(name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(24 * time.Hour)}
		if parent == nil {
			template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
			parent, parentKey = template, key
		} else {
			template.DNSNames = []string{name}
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
		if err != nil {
			return nil, nil, err
		}
		cert, err := x509.ParseCertificate(der)
		return cert, key, err
	}
	ca, caKey, err := make("authority", nil, nil)
	if err != nil {
		return err
	}
	cert, key, err := make("db.test", ca, caKey)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: ca.Raw}, "cert.pem": {Type: "CERTIFICATE", Bytes: cert.Raw}, "key.pem": {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
