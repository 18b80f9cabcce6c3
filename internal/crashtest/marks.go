package crashtest

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

//go:embed testdata/marks.hcl
var marksFile []byte

// Marks is a host whose runs leave marks outside: each publishes a message to a stream,
// writes a row of an SQLite database, and counts in a bucket. It is killed again and again.
// The test links the driver "sqlite" of database/sql.
type Marks struct {
	Host   *Host
	Rand   *rand.Rand
	Killed map[KillPoint]int

	mu       sync.Mutex
	waiting  []unanswered   // guarded by mu, as is what follows
	next     int            // number that was not requested yet
	accepted map[int]string // runs by their numbers
}

// unanswered is a request that was not acknowledged: the run may have begun or not.
type unanswered struct {
	n     int
	first time.Time
}

// markers is how many clients of Marks there are at once, and markRuns how many runs they
// begin in the life of one process at most: the last one has to end them all.
const (
	markers  = 4
	markRuns = 40
)

// NewMarks makes a site in an empty directory, with the built guest marks and a database, and
// has the host make the stream.
func NewMarks(ctx context.Context, program Program, dir, module string, random *rand.Rand) (*Marks, error) {
	site := filepath.Join(dir, "site")
	err := errors.Join(os.MkdirAll(site, 0o700), os.WriteFile(filepath.Join(site, "marks.hcl"), marksFile, 0o600), os.Link(module, filepath.Join(site, "marks.wasm")))
	if err != nil {
		return nil, err
	}
	m := &Marks{Rand: random, Killed: map[KillPoint]int{}, accepted: map[int]string{}}
	if err := m.database(site, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE marks (n INTEGER PRIMARY KEY, times INTEGER NOT NULL)")
		return err
	}); err != nil {
		return nil, err
	}
	if m.Host, err = NewHost(program, &Site{Dir: site}, filepath.Join(dir, "data")); err != nil {
		return nil, err
	}
	return m, m.served(ctx, func(ctx context.Context, nc *nats.Conn) error {
		js, err := jetstream.New(nc)
		if err == nil {
			_, err = js.CreateStream(ctx, jetstream.StreamConfig{
				Name: "MARKS", Subjects: []string{"marks.>"},
				Duplicates: time.Hour, // a slow machine may take longer than two minutes for an attempt
			})
		}
		return err
	})
}

func (m *Marks) database(site string, use func(*sql.DB) error) error {
	db, err := sql.Open("sqlite", filepath.Join(site, "marks.db"))
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

// served starts a process, uses it when it serves, and stops it.
func (m *Marks) served(ctx context.Context, use func(context.Context, *nats.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*lifetime)
	defer cancel()
	p, err := m.Host.Start()
	if err != nil {
		return err
	}
	defer p.Kill()
	if err := m.Host.Serves(ctx, p); err != nil {
		return err
	}
	nc, err := m.Host.Operator(ctx)
	if err != nil {
		return err
	}
	err = use(ctx, nc)
	nc.Close()
	if err != nil {
		return withOutput(err, p)
	}
	return p.Stop(ctx)
}

// Kill starts a process and kills it at a random kill point, while runs are requested.
func (m *Marks) Kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lifetime)
	defer cancel()
	p, err := m.Host.Start()
	if err != nil {
		return err
	}
	loading := sync.WaitGroup{}
	loading.Go(func() { m.load(ctx) })
	point, err := pick(m.Rand).await(ctx, m.Host, p, m.Rand)
	p.Kill()
	cancel()
	loading.Wait()
	m.Killed[point]++
	return err
}

// Accepted is how many runs were acknowledged.
func (m *Marks) Accepted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.accepted)
}

// load requests runs until ctx or the connection ends.
func (m *Marks) load(ctx context.Context) {
	nc, err := m.Host.Operator(ctx)
	if err != nil {
		return // the process was killed before it could be reached
	}
	defer nc.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nc.SetClosedHandler(func(*nats.Conn) { cancel() })
	var all sync.WaitGroup
	for range markers {
		all.Go(func() {
			for made := 0; made < markRuns/markers && ctx.Err() == nil; {
				u := m.take()
				if err := m.request(ctx, nc, u.n); err == nil {
					made++
					continue
				}
				m.giveBack(u)
				sleep(ctx, 2*time.Millisecond) // the host does not serve yet
			}
		})
	}
	all.Wait()
}

// take gives a number that is to be requested, first those that may have been requested
// before, as long as the host remembers their keys.
func (m *Marks) take() unanswered {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.waiting) > 0 {
		u := m.waiting[0]
		m.waiting = m.waiting[1:]
		if time.Since(u.first) < again {
			return u
		}
	}
	m.next++
	return unanswered{m.next, time.Now()}
}

func (m *Marks) giveBack(u unanswered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = append(m.waiting, u)
}

// request requests a run under a key, so that it may be repeated.
func (m *Marks) request(ctx context.Context, nc *nats.Conn, n int) error {
	var answer struct{ Run string }
	header := nats.Header{"Fh-Key": {fmt.Sprint("mark-", n)}}
	if err := request(ctx, nc, "fh.v1.api.run.mark", fmt.Sprintf(`{"n":%d}`, n), header, &answer); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.accepted[n] = answer.Run
	return nil
}

func request(ctx context.Context, nc *nats.Conn, subject, body string, header nats.Header, answer any) error {
	msg, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: []byte(body), Header: header})
	if err != nil {
		return err
	}
	if code := msg.Header.Get("Nats-Service-Error-Code"); code != "" {
		return fmt.Errorf("%s: %s %.200s", subject, code, msg.Data)
	}
	return json.Unmarshal(msg.Data, answer)
}

// Settle lets everything end that was acknowledged and returns what is missing, or is there
// too often. runs is how many there were.
func (m *Marks) Settle(ctx context.Context) (runs int, found []string, err error) {
	published := map[int][]string{}
	lost := map[int]bool{}
	err = m.served(ctx, func(ctx context.Context, nc *nats.Conn) error {
		for n, run := range m.accepted {
			switch state, outcome, err := endOf(ctx, nc, run); {
			case err != nil:
				return fmt.Errorf("run %s of %d: %w", run, n, err)
			case outcome == "lost":
				lost[n] = true // killed too often
			case state != "succeeded":
				found = append(found, fmt.Sprintf("run %s of %d is %s", run, n, state))
			}
		}
		return countMessages(ctx, nc, published)
	})
	if err != nil {
		return 0, nil, err
	}
	for n, messages := range published {
		if len(messages) > 1 {
			found = append(found, fmt.Sprintf("%d, known as run %q, was published %d times: %s", n, m.accepted[n], len(messages), messages))
		}
	}
	rows, attempts, err := m.rows(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("the database cannot be written and read: %w", err)
	}
	for n := range m.accepted {
		if !lost[n] && (len(published[n]) == 0 || !rows[n]) {
			found = append(found, fmt.Sprintf("%d has succeeded: %d messages, a row: %t", n, len(published[n]), rows[n]))
		}
	}
	counted, err := m.counted(ctx)
	if runs = len(m.accepted) - len(lost); err == nil && (counted < runs || counted > attempts) {
		found = append(found, fmt.Sprintf("%d were counted, of %d runs that wrote rows %d times", counted, runs, attempts))
	}
	return runs, found, err
}

// endOf is how a run has ended. It waits for that.
func endOf(ctx context.Context, nc *nats.Conn, run string) (state, outcome string, err error) {
	for {
		var r struct {
			State string
			Error struct{ Outcome string }
		}
		if err := request(ctx, nc, "fh.v1.api.get", fmt.Sprintf(`{"run":%q}`, run), nil, &r); err != nil {
			return "", "", err
		}
		if r.State != "pending" && r.State != "running" {
			return r.State, r.Error.Outcome, nil
		}
		sleep(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return "", "", context.Cause(ctx)
		}
	}
}

// countMessages finds the messages of the stream by what they say: ids and times.
func countMessages(ctx context.Context, nc *nats.Conn, into map[int][]string) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, "MARKS")
	if err != nil {
		return fmt.Errorf("the stream: %w", err)
	}
	info := stream.CachedInfo()
	for at := max(info.State.FirstSeq, 1); at <= info.State.LastSeq; at++ {
		msg, err := stream.GetMsg(ctx, at)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(msg.Data))
		if err != nil {
			return err
		}
		into[n] = append(into[n], fmt.Sprintf("%s at %s", msg.Header.Get(nats.MsgIdHdr), msg.Time.UTC().Format(time.RFC3339Nano)))
	}
	return nil
}

// rows are the numbers of the database, and how often they were written in all. That it can
// be written shows that no lock was left.
func (m *Marks) rows(ctx context.Context) (map[int]bool, int, error) {
	rows, attempts := map[int]bool{}, 0
	err := m.database(m.Host.Site.Dir, func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, "UPDATE marks SET times = times"); err != nil {
			return err
		}
		all, err := db.QueryContext(ctx, "SELECT n, times FROM marks")
		if err != nil {
			return err
		}
		defer all.Close()
		for all.Next() {
			var n, times int
			if err := all.Scan(&n, &times); err != nil {
				return err
			}
			rows[n] = true
			attempts += times
		}
		return all.Err()
	})
	return rows, attempts, err
}

// counted is the number in the bucket.
func (m *Marks) counted(ctx context.Context) (n int, err error) {
	err = m.Host.inside(ctx, func(nc *nats.Conn) error {
		js, err := jetstream.New(nc)
		if err != nil {
			return err
		}
		stream, err := js.Stream(ctx, "KV_FH_KV_marks")
		if err != nil {
			return fmt.Errorf("the bucket: %w", err)
		}
		msg, err := stream.GetLastMsgForSubject(ctx, "$KV.FH_KV_marks.made")
		if err != nil {
			return err
		}
		n, err = strconv.Atoi(string(msg.Data))
		return err
	})
	return n, err
}
