package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/bus/kv"
	"github.com/flowhost/flowhost/bus/messages"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/internal/mask"
	"github.com/flowhost/flowhost/internal/reach"
	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/internal/reach/mail"
	"github.com/flowhost/flowhost/internal/reach/secrets"
	"github.com/flowhost/flowhost/internal/reach/sqlreach"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// Outside is all that calls reach beside their files: pools and clients that live as long as
// the host, and the connections and secrets that are deployed now. It exists before anything
// is connected, because flows are checked with the host first.
type Outside struct {
	masker    *mask.Masker
	log       *slog.Logger
	sql       *sqlreach.Pools
	mail      *mail.Client
	reach     *reach.Reach
	set       atomic.Pointer[flows.Set]
	bound     atomic.Pointer[[]access.Allow] // of the settings that were read last; nil: those of the set
	nats      atomic.Pointer[natsDrivers]    // nil while there is no server
	alone     sync.Mutex                     // held while one is started
	server    *Link                          // that was started for want of another one
	temporary string                         // directory of that server

	mu      sync.Mutex // held by who changes what follows
	current settings.Settings
	inUse   atomic.Pointer[clients]
	former  []*clients // whose operations may still be under way
}

// clients are what depends on the settings.
type clients struct {
	secrets *secrets.Store
	http    *httpreach.Client
}

// natsDrivers perform operations on NATS, and those on artifacts, which are beside it.
type natsDrivers struct {
	kv        *kv.Store
	messages  *messages.Messages
	artifacts *artifacts.Artifacts
}

// NewOutside makes an outside in which nothing is deployed.
func NewOutside(s settings.Settings, log *slog.Logger) (*Outside, error) {
	o := &Outside{masker: mask.New(), log: log}
	if err := o.Configure(s); err != nil {
		return nil, err
	}
	dial := o.inUse.Load().http.Dial // which depends on no setting
	o.sql = sqlreach.New(sqlreach.Config{Secrets: o, Dial: dial, Log: log})
	o.mail = mail.New(mail.Config{Secrets: o, Dial: dial})
	o.reach = reach.New(reach.Config{
		Deployed: o, Secrets: o, Allow: o.allow,
		Drivers: map[string]reach.Driver{
			"http":      driver(func(a *reach.Attempt) reach.Session { return byConnection{a, o.inUse.Load().http.Do} }),
			"mail":      driver(func(a *reach.Attempt) reach.Session { return byConnection{a, o.mail.Do} }),
			"sql":       driver(o.sqlSession),
			"kv":        driver(o.kvSession),
			"publish":   driver(o.messageSession),
			"request":   driver(o.messageSession),
			"artifact":  driver(o.artifactSession),
			"progress":  driver(func(*reach.Attempt) reach.Session { return doing(answerNothing) }),
			"heartbeat": driver(func(*reach.Attempt) reach.Session { return doing(answerNothing) }),
		},
	})
	return o, nil
}

// Configure applies settings: where secrets are, and the proxy.
func (o *Outside) Configure(s settings.Settings) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if before := o.inUse.Load(); before != nil {
		if equalReach(&o.current, &s) {
			return nil
		}
		o.former = append(o.former, before)
	}
	vault := s.Secrets.Vault
	next := &clients{secrets: secrets.New(secrets.Config{
		Deployed: o, Allow: o.allow, AgeIdentities: s.Secrets.Identities, Seen: o.masker.Add, Log: o.log,
		Vault: secrets.VaultConfig{Address: vault.Address, TokenFile: vault.TokenFile, TokenEnv: "VAULT_TOKEN", Namespace: vault.Namespace, CA: vault.CA},
	})}
	var err error
	if next.http, err = httpreach.New(httpreach.Config{Secrets: o, Proxy: s.Proxy}); err != nil {
		return err
	}
	o.current = s
	o.inUse.Store(next)
	return nil
}

func equalReach(a, b *settings.Settings) bool {
	one, _ := json.Marshal([]any{a.Secrets, a.Proxy}) // strings and lists of them
	other, _ := json.Marshal([]any{b.Secrets, b.Proxy})
	return bytes.Equal(one, other)
}

// Deploy makes the connections and secrets of a set those that calls reach. Pools of databases
// that did not change stay.
func (o *Outside) Deploy(set *flows.Set) {
	o.set.Store(set)
	o.bound.Store(nil)
	o.inUse.Load().secrets.Invalidate()
}

// Bound makes the allow blocks of settings decide on operations from now on, also before, and
// without, the deployment of flows that were loaded with them.
func (o *Outside) Bound(operator *flows.Operator) {
	var blocks []access.Allow
	if operator != nil {
		blocks = operator.Allow
	}
	o.bound.Store(&blocks)
}

// Connect adds what is reached by a link.
func (o *Outside) Connect(l *Link, s *settings.Settings) error {
	d := new(natsDrivers)
	var err error
	if d.kv, err = kv.New(kv.Config{Conn: l.records, Replicas: max(s.Streams.Replicas, 1), Log: o.log}); err != nil {
		return err
	}
	if d.messages, err = messages.New(messages.Config{Conn: l.app}); err != nil {
		return err
	}
	d.artifacts = l.artifacts
	o.nats.Store(d)
	return nil
}

// Close ends everything. No call runs anymore.
func (o *Outside) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range append(o.former, o.inUse.Load()) {
		c.http.Close()
		c.secrets.Close()
	}
	o.mail.Close()
	o.sql.Close()
	if o.server != nil {
		if err := o.server.Close(); err != nil {
			o.log.Error("ending the server in memory failed", "error", err)
		}
	}
	if o.temporary != "" {
		os.RemoveAll(o.temporary)
	}
}

// Connection implements access.Deployed.
func (o *Outside) Connection(flow, name string) *access.Connection {
	if set := o.set.Load(); set != nil {
		return set.Connection(flow, name)
	}
	return nil
}

// Secret implements access.Deployed.
func (o *Outside) Secret(flow, name string) *access.Secret {
	if set := o.set.Load(); set != nil {
		return set.Secret(flow, name)
	}
	return nil
}

// Resolve implements access.Secrets.
func (o *Outside) Resolve(ctx context.Context, flow, name string) (string, error) {
	return o.inUse.Load().secrets.Resolve(ctx, flow, name)
}

// allow is what the operator allows a flow now. Where that cannot be decided, it is nothing.
func (o *Outside) allow(flow string) *access.Allow {
	set := o.set.Load()
	if set == nil {
		return &access.Allow{}
	}
	a, err := set.Allow(flow)
	if bound := o.bound.Load(); bound != nil {
		a, err = access.Select(*bound, flow)
	}
	if err != nil {
		o.log.Error("allow blocks of the settings contradict each other, the flow is allowed nothing", "flow", flow, "error", err)
		return &access.Allow{}
	}
	return a
}

// Open is for [host.Config].Reach.
func (o *Outside) Open(call *run.Call) door.Session {
	caller := access.Caller{
		Flow: call.Flow, Run: string(call.Run), Task: call.Task, Key: call.Key, Attempt: call.Attempt,
		IdempotencyKey: call.IdempotencyKey(), Hops: call.Hops,
	}
	mentions := func(digest string) bool {
		return bytes.Contains(call.Input, []byte(digest)) || bytes.Contains(call.Config, []byte(digest))
	}
	return masked{o.reach.Open(caller, call.Grants.Grants, mentions), o.masker}
}

// masked masks secrets in what the host keeps or passes on for guests. What they send to a
// server by themselves is not touched: it would not be what the server expects.
type masked struct {
	door.Session
	masker *mask.Masker
}

// Do implements door.Session.
func (m masked) Do(ctx context.Context, op *access.Operation) access.Answer {
	switch op.Kind {
	case access.KindKVPut, access.KindPublish, access.KindArtifactWrite, access.KindProgress:
		op.Body, op.Head = m.masker.Bytes(op.Body), m.masker.JSON(op.Head)
	}
	answer := m.Session.Do(ctx, op)
	for _, f := range []*access.Fault{answer.Fault, answer.Fault.Full()} {
		if f != nil {
			f.Message, f.Target, f.Detail = m.masker.String(f.Message), m.masker.String(f.Target), m.masker.String(f.Detail)
		}
	}
	return answer
}

// mostDenials of one attempt are logged for everybody to see: a guest could fill the log.
const mostDenials = 20

// Operation is for [host.Config].Operations: denials are for the operator to see.
func (o *Outside) Operation(call *run.Call, r door.Report) {
	log := o.log.With("run", call.Run, "flow", call.Flow, "task", run.TaskRef{Task: call.Task, Key: call.Key}.Label(), "attempt", call.Attempt,
		"operation", r.Operation.Number, "kind", r.Operation.Kind)
	switch fault := r.Answer.Fault.Full(); {
	case fault == nil:
		log.Debug("operation performed", "took", r.Took)
	case r.Late:
		log.Error("operation does not end", "error", fault.Message, "took", r.Took)
	case fault.Code == access.CodeDenied && r.Denied > mostDenials:
		log.Debug("operation denied", "target", fault.Target, "rule", fault.Rule, "add", fault.Add, "error", fault.Message)
	case fault.Code == access.CodeDenied:
		if r.Denied == mostDenials {
			log = log.With("further", "those of this attempt are logged at the level debug")
		}
		log.Warn("operation denied", "target", fault.Target, "rule", fault.Rule, "add", fault.Add, "error", fault.Message)
	default:
		log.Debug("operation failed", "code", fault.Code, "target", fault.Target, "error", fault.Message, "took", r.Took)
	}
}

// narrow takes from a call what the operator does not allow anymore. What is left out here is
// denied by what is missing; operations are decided one by one.
func (o *Outside) narrow(call *run.Call) {
	allow, g := o.allow(call.Flow), &call.Grants
	var connections []*access.Connection
	for _, name := range g.Connections {
		if c := o.Connection(call.Flow, name); c != nil {
			connections = append(connections, c)
		}
	}
	for _, x := range allow.Excess(&g.Grants, connections) {
		switch x.Key {
		case "clock":
			g.Clock = ""
		case "random":
			g.Random = ""
		}
	}
	if allow == nil {
		return
	}
	env := map[string]string{}
	for name, value := range g.Env {
		if access.Names(allow.Env, name) {
			env[name] = value
		}
	}
	g.Env = env
	var files []run.FileGrant
	for _, f := range g.Files {
		mode := access.ReadOnly
		if f.Write {
			mode = access.ReadWrite
		}
		if allow.IncludesFiles(f.Path, mode) {
			files = append(files, f)
		}
	}
	g.Files = files
}

// Guard narrows what calls are granted to what the operator allows now, and masks secrets in
// what they return. What guests write while they run is masked by maskLines.
func (o *Outside) Guard(next engine.Invoker) engine.Invoker {
	return InvokerFunc(func(ctx context.Context, call run.Call) (run.Result, error) {
		o.narrow(&call)
		result, err := next.Invoke(ctx, call)
		result.Output = o.masker.JSON(result.Output)
		if f := result.Failure; f != nil {
			masked := *f
			masked.Message, masked.Details = o.masker.String(f.Message), o.masker.JSON(f.Details)
			result.Failure = &masked
		}
		for i, line := range result.Log.Lines {
			result.Log.Lines[i] = o.maskLine(line)
		}
		return result, err
	})
}

func (o *Outside) maskLine(line run.LogLine) run.LogLine {
	line.Message, line.Fields = o.masker.String(line.Message), o.masker.JSON(line.Fields)
	return line
}

// maskLines passes lines of guests on with secrets masked.
func (o *Outside) maskLines(next func(*run.Call, time.Time, run.LogLine)) func(*run.Call, time.Time, run.LogLine) {
	if next == nil {
		return nil
	}
	return func(call *run.Call, at time.Time, line run.LogLine) { next(call, at, o.maskLine(line)) }
}

// driver is a function as a reach.Driver.
type driver func(*reach.Attempt) reach.Session

// Open implements reach.Driver.
func (d driver) Open(a *reach.Attempt) reach.Session { return d(a) }

// doing is a session that has nothing to close.
type doing func(context.Context, *access.Operation) access.Answer

// Do implements reach.Session.
func (d doing) Do(ctx context.Context, op *access.Operation) access.Answer { return d(ctx, op) }

// Close implements reach.Session.
func (d doing) Close() {}

func answerNothing(context.Context, *access.Operation) access.Answer {
	return access.Answer{Head: []byte("{}")}
}

// byConnection performs operations whose head names a connection, or none.
type byConnection struct {
	attempt *reach.Attempt
	do      func(context.Context, access.Caller, access.Policy, *access.Connection, *access.Operation) access.Answer
}

// Do implements reach.Session.
func (b byConnection) Do(ctx context.Context, op *access.Operation) access.Answer {
	var head struct {
		Connection string `json:"connection"`
	}
	_ = json.Unmarshal(op.Head, &head) // the driver reports what is wrong with it
	var connection *access.Connection
	if head.Connection != "" {
		var fault *access.Fault
		if connection, fault = b.attempt.Connection(head.Connection, access.TypeHTTP, access.TypeSMTP); fault != nil {
			return access.Answer{Fault: fault}
		}
	}
	return b.do(ctx, b.attempt.Caller, b.attempt.Policy(), connection, op)
}

// Close implements reach.Session.
func (b byConnection) Close() {}

func (o *Outside) sqlSession(a *reach.Attempt) reach.Session {
	return o.sql.Session(a.Caller, func(name string) (*access.Connection, *access.Fault) {
		return a.Connection(name, access.TypePostgres, access.TypeMySQL, access.TypeSQLite)
	})
}

// withNATS makes a session of the server that the host has. A single run, which has none, gets
// one of its own with the first operation that needs it.
func (o *Outside) withNATS(open func(*natsDrivers) reach.Session) reach.Session {
	d, err := o.natsOrAlone()
	if err != nil {
		return doing(func(context.Context, *access.Operation) access.Answer {
			return access.Answer{Fault: &access.Fault{Code: access.CodeUnreachable, Message: "no NATS server is connected: " + err.Error(), Retryable: true}}
		})
	}
	return open(d)
}

func (o *Outside) natsOrAlone() (*natsDrivers, error) {
	if d := o.nats.Load(); d != nil {
		return d, nil
	}
	o.alone.Lock()
	defer o.alone.Unlock()
	if d := o.nats.Load(); d != nil {
		return d, nil
	}
	dir, err := os.MkdirTemp("", "flowhost-")
	if err != nil {
		return nil, err
	}
	o.temporary = dir
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	s := settings.Settings{Data: filepath.Join(dir, "data"), Durability: natsd.SyncMemory}
	if o.server, err = OpenLink(ctx, s, false, new(flows.Set), o.log); err != nil {
		return nil, err
	}
	err = o.Connect(o.server, &s)
	return o.nats.Load(), err
}

// startTime bounds the start of a server in memory.
const startTime = 30 * time.Second

func (o *Outside) kvSession(a *reach.Attempt) reach.Session {
	return o.withNATS(func(d *natsDrivers) reach.Session { return doing(d.kv.Session(a.Policy).Do) })
}

func (o *Outside) messageSession(a *reach.Attempt) reach.Session {
	return o.withNATS(func(d *natsDrivers) reach.Session { return doing(d.messages.Session(a.Caller, a.Policy).Do) })
}

func (o *Outside) artifactSession(a *reach.Attempt) reach.Session {
	return o.withNATS(func(d *natsDrivers) reach.Session {
		return artifactSession{d.artifacts.Session(a.Policy, a.Mentions)}
	})
}

type artifactSession struct{ *artifacts.Session }

// Close implements reach.Session.
func (s artifactSession) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), discardTime)
	defer cancel()
	s.Session.Close(ctx)
}

// discardTime bounds the removal of artifacts that an attempt has not committed.
const discardTime = 10 * time.Second
