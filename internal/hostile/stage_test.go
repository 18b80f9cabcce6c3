package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/internal/crashtest"
)

// Bounds of waits. None of them is a bound of an attack.
const (
	startup  = time.Minute      // of a host
	patience = 20 * time.Second // for an answer
)

// honestFlows are served beside each attack: what the probes ask for.
const honestFlows = `
flow "neighbour" {
  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = trigger.payload
  }
}

flow "ledger" {
  wait "moment" {
    duration = "1ms"
  }
}
`

// stage is a host that serves the honest flows and those of an attacker.
type stage struct {
	dir      string // of everything
	flows    string // directory of the flow files
	host     *crashtest.Host
	process  *crashtest.Process
	operator *nats.Conn // of the probes
	ledger   ledger     // of the present probes, or of those before
}

// newStage starts a host below dir, with the attacker's flow file.
func newStage(ctx context.Context, dir, attacker string) (*stage, error) {
	s := &stage{dir: dir, flows: filepath.Join(dir, "flows")}
	err := errors.Join(os.MkdirAll(s.flows, 0o700), s.write("honest.hcl", honestFlows), s.write("attacker.hcl", attacker))
	for _, guest := range []string{"unruly.wasm", "flood-cmd.wasm"} {
		err = errors.Join(err, os.Link(filepath.Join(built.guests, guest), filepath.Join(s.flows, guest)))
	}
	if err != nil {
		return nil, err
	}
	program := built.program
	program.Log = s.log()
	s.host, err = crashtest.NewHost(program, &crashtest.Site{Dir: s.flows}, filepath.Join(dir, "data"), "--no-watch")
	if err != nil {
		return nil, err
	}
	return s, s.start(ctx)
}

// log is the file with everything that the host's processes write.
func (s *stage) log() string { return filepath.Join(s.dir, "output") }

// write replaces a flow file.
func (s *stage) write(name, text string) error {
	return os.WriteFile(filepath.Join(s.flows, name), []byte(text), 0o600)
}

// start starts a process and connects to it. The one before has ended.
func (s *stage) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	var err error
	if s.process, err = s.host.Start(); err != nil {
		return err
	}
	if err := s.host.Serves(ctx, s.process); err != nil {
		return err
	}
	s.operator, err = s.host.Operator(ctx)
	return err
}

// client connects with the credentials for clients. What the server refuses of what
// it sends is not of interest.
func (s *stage) client(ctx context.Context) (*nats.Conn, error) {
	at, err := s.credentials()
	if err != nil {
		return nil, err
	}
	left := patience
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	return nats.Connect(at.URL, nats.UserInfo(at.User, at.Password), nats.CustomInboxPrefix(at.Inbox), nats.NoReconnect(), nats.Timeout(left),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
}

// admits waits until a client can connect.
func (s *stage) admits(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		nc, err := s.client(ctx)
		if err == nil {
			nc.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no client can connect any more: %w", err)
		case <-s.process.Ended():
			return nil
		case <-time.After(connectPace):
		}
	}
}

// close ends the process, softly when it can.
func (s *stage) close() error {
	if s.operator != nil {
		s.operator.Close()
	}
	if s.process == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.process.Signal(syscall.SIGTERM)
	select {
	case <-s.process.Ended():
	case <-ctx.Done():
		s.process.Kill()
		return context.Cause(ctx)
	}
	if code := s.process.ExitCode(); code != 0 {
		return fmt.Errorf("exit code %d, its last words:\n%s", code, s.lastWords())
	}
	return nil
}

// lastWords is what the process has written last: warnings and errors, and the last
// lines of all. What the collector says is left out.
func (s *stage) lastWords() string {
	var problems, all []string
	for line := range strings.Lines(s.process.Output()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			problems = append(problems, line)
		}
		if !strings.HasPrefix(line, "gc ") {
			all = append(all, line)
		}
	}
	return strings.Join(problems[max(0, len(problems)-15):], "") + "…\n" + strings.Join(all[max(0, len(all)-5):], "")
}

// restart kills the process and starts the next one.
func (s *stage) restart(ctx context.Context) error {
	s.kill()
	return s.start(ctx)
}

// kill ends the process as a crash would.
func (s *stage) kill() {
	if s.operator != nil {
		s.operator.Close()
	}
	if s.process != nil {
		s.process.Kill()
	}
}

// hasEnded reports whether the process has ended.
func (s *stage) hasEnded() bool {
	select {
	case <-s.process.Ended():
		return true
	default:
		return false
	}
}

// credentials are what a context file of the data directory holds.
type credentials struct {
	URL, User, Password string
	Inbox               string `json:"inbox_prefix"`
}

// credentials are those for clients, for who speaks the protocol by hand.
func (s *stage) credentials() (at credentials, err error) {
	text, err := os.ReadFile(filepath.Join(s.host.Data, "nats-context.json"))
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	return at, err
}

// ask sends a request and decodes the answer, which must not be an error.
func ask[T any](ctx context.Context, nc *nats.Conn, subject, body string, header nats.Header) (answer T, err error) {
	msg, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: []byte(body), Header: header})
	if err != nil {
		return answer, err
	}
	if code := msg.Header.Get("Nats-Service-Error-Code"); code != "" {
		return answer, fmt.Errorf("%s: %s %s", subject, code, clip(msg.Data))
	}
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return answer, fmt.Errorf("%s: %w: %s", subject, err, clip(msg.Data))
	}
	return answer, nil
}

func clip(b []byte) []byte { return b[:min(len(b), 300)] }

// ended is the record of a run.
type ended struct {
	Run, State string
	Output     json.RawMessage
}

// honest makes a run of the honest flow and checks what comes of it.
func (s *stage) honest(ctx context.Context, nc *nats.Conn, n int) (run string, err error) {
	r, err := ask[ended](ctx, nc, "fh.v1.api.run.neighbour", fmt.Sprintf(`{"n":%d}`, n), nats.Header{"Fh-Wait": {"30s"}})
	if err == nil && (r.State != "succeeded" || string(r.Output) != fmt.Sprintf(`{"echo":{"n":%d}}`, n)) {
		err = fmt.Errorf("a run of the honest flow is %+v", r)
	}
	return r.Run, err
}

// remembers checks that a finished run is still known.
func (s *stage) remembers(ctx context.Context, run string) error {
	r, err := ask[ended](ctx, s.operator, "fh.v1.api.get", fmt.Sprintf(`{"run":%q}`, run), nil)
	if err == nil && (r.State != "succeeded" || len(r.Output) == 0) {
		err = fmt.Errorf("the run that had finished before is %+v", r)
	}
	return err
}

// resident is a field of the process's status, in MiB.
func (s *stage) resident(field string) int64 {
	return statusOf(s.process.Pid(), field)
}

// resetPeak begins a new measurement of the peak.
func (s *stage) resetPeak() {
	os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.process.Pid()), []byte("5"), 0) // elsewhere than on Linux nothing is measured
}

// alive is an error when the process has ended.
func (s *stage) alive() error {
	if s.hasEnded() {
		return fmt.Errorf("the process has ended with %d, its last words:\n%s", s.process.ExitCode(), s.lastWords())
	}
	return nil
}

// reload asks the process to load its flows again.
func (s *stage) reload() { s.process.Signal(syscall.SIGHUP) }
