package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/flowhost/flowhost/internal/testkit/gobuild"
)

// TestScripts runs the scripts against the real main. Beside the commands of
// testscript they use:
//
//	code N command...               runs it and expects exit code N
//	interrupt N PATTERN command...  sends SIGINT when a line of stderr matches, expects exit code N;
//	                                a second pattern after "; " waits for a later line and sends
//	                                SIGTERM, which is not taken for the first signal, forwarded
//	request HOST SUBJECT JSON       asks over NATS, and waits for the run's end; HOST is a data directory or a URL
//	answered PATTERN HOST SUBJECT JSON   asks over NATS, again and again until the answer matches
//	until PATTERN command...        runs it again and again until a line of stdout matches
//	hangup                          sends SIGHUP to what runs in the background
//	snippet PAGE TEXT FILE          writes the block of a page that contains the text to a file
//	natsserver                      starts a NATS server with JetStream at $NATS_URL
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", filepath.Join(testRoot, "examples"))
			env.Setenv("GUESTS", filepath.Join(testRoot, "guests"))
			env.Setenv("TZ", "UTC")
			env.Setenv("XDG_CACHE_HOME", gobuild.ModuleCache())
			env.Setenv("BIN", filepath.SplitList(os.Getenv("PATH"))[0]) // where testscript has put flowhost
			return goEnvironment(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": codeCommand, "interrupt": interruptCommand, "request": requestCommand, "natsserver": serverCommand,
			"answered": answeredCommand, "until": untilCommand, "hangup": hangupCommand, "snippet": snippetCommand,
		},
		RequireUniqueNames: true,
	})
}

// goEnvironment lets scripts build with what is compiled already: a script has no
// home of its own.
func goEnvironment(env *testscript.Env) error {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	env.Setenv("CHECKOUT", checkout)
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return err
		}
		env.Setenv(name, strings.TrimSpace(string(value)))
	}
	env.Setenv("GOWORK", "off")
	return nil
}

func codeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	checkCode(ts, args[0], ts.Exec(args[1], args[2:]...))
}

func checkCode(ts *testscript.TestScript, want string, err error) {
	got, exit := 0, (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s", err)
	}
	if strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
}

func interruptCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt N PATTERN command...")
	}
	patterns := strings.Split(args[1], "; ")
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+ts.Getenv("XDG_CACHE_HOME"))
	cmd.Stdout = ts.Stdout()
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	lines := bufio.NewScanner(io.TeeReader(stderr, ts.Stderr()))
	for lines.Scan() {
		if len(patterns) > 0 && regexp.MustCompile(patterns[0]).MatchString(lines.Text()) {
			ts.Check(cmd.Process.Signal(signals[0]))
			patterns, signals = patterns[1:], signals[1:]
		}
	}
	checkCode(ts, args[0], cmd.Wait())
	if len(patterns) > 0 {
		ts.Fatalf("no line of stderr matched %s", patterns[0])
	}
}

// patience bounds how long a host may take to come up on a busy machine.
const patience = time.Minute

func requestCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: request HOST SUBJECT JSON")
	}
	end := time.Now().Add(patience)
	nc := connectTo(ts, args[0], end)
	defer nc.Close()
	_, err := ts.Stdout().Write(append(answerOf(ts, nc, args[1], args[2], end), '\n'))
	ts.Check(err)
}

// answerOf asks a host, which may still start.
func answerOf(ts *testscript.TestScript, nc *nats.Conn, subject, body string, end time.Time) []byte {
	msg := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{"Fh-Wait": {patience.String()}}}
	for {
		reply, err := nc.RequestMsg(msg, patience)
		if errors.Is(err, nats.ErrNoResponders) && time.Now().Before(end) {
			time.Sleep(10 * time.Millisecond) // nothing reports when the host begins to listen
			continue
		}
		ts.Check(err)
		return reply.Data
	}
}

func answeredCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: answered PATTERN HOST SUBJECT JSON")
	}
	pattern, end := regexp.MustCompile(args[0]), time.Now().Add(patience)
	nc := connectTo(ts, args[1], end)
	defer nc.Close()
	for {
		answer := answerOf(ts, nc, args[2], args[3], end)
		if pattern.Match(answer) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not match %s", answer, pattern)
		}
		time.Sleep(100 * time.Millisecond) // the host does it by itself
	}
}

// connectTo connects to a URL, or with the address and credentials that a host
// leaves in its data directory.
func connectTo(ts *testscript.TestScript, host string, end time.Time) *nats.Conn {
	for {
		var context struct {
			URL, User, Password string
			Inbox               string `json:"inbox_prefix"`
		}
		context.URL, context.Inbox = host, strings.TrimSuffix(nats.InboxPrefix, ".")
		var err error
		if !strings.Contains(host, "://") {
			var text []byte
			if text, err = os.ReadFile(filepath.Join(ts.MkAbs(host), "nats-context.json")); err == nil {
				err = json.Unmarshal(text, &context)
			}
		}
		if err == nil {
			var nc *nats.Conn
			if nc, err = nats.Connect(context.URL, nats.UserInfo(context.User, context.Password), nats.CustomInboxPrefix(context.Inbox)); err == nil {
				return nc
			}
		}
		if time.Now().After(end) {
			ts.Fatalf("the host does not come up: %s", err)
		}
		time.Sleep(10 * time.Millisecond) // another process writes the file
	}
}

func serverCommand(ts *testscript.TestScript, _ bool, _ []string) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: ts.MkAbs("nats"), NoSigs: true,
		JetStreamMaxStore: 64 << 30,
	})
	ts.Check(err)
	s.Start()
	ts.Defer(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		ts.Fatalf("the NATS server does not come up")
	}
	ts.Setenv("NATS_URL", s.ClientURL())
}

func untilCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN command...")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	for end := time.Now().Add(patience); ; {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("no line matches %s: %v", pattern, err)
		}
		time.Sleep(100 * time.Millisecond) // the host does it by itself
	}
}

func hangupCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: hangup")
	}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGHUP))
	}
}

// snippetCommand takes what a reader would paste: a fenced block, or the flow in an
// indented one that shows a terminal.
func snippetCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: snippet PAGE TEXT FILE")
	}
	page, err := os.ReadFile(filepath.Join(ts.Getenv("CHECKOUT"), filepath.FromSlash(args[0])))
	ts.Check(err)
	fenced := regexp.MustCompile("(?ms)^```[a-z][^\n]*\n(.*?)^```$")
	indented := regexp.MustCompile(`(?ms)^(    flow "\w+" \{\n.*?^    \}\n)`)
	for _, blocks := range [][][]string{fenced.FindAllStringSubmatch(string(page), -1), indented.FindAllStringSubmatch(string(page), -1)} {
		for _, b := range blocks {
			if strings.Contains(b[1], args[1]) {
				text := regexp.MustCompile(`(?m)^    `).ReplaceAllString(b[1], "")
				if b[1] != b[0] { // fenced
					text = b[1]
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(text), 0o600))
				return
			}
		}
	}
	ts.Fatalf("no block of %s contains %q", args[0], args[1])
}
