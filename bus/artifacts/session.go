package artifacts

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// Bounds of one attempt.
const (
	MaxHandles = 16   // artifacts that are open at once
	MaxMade    = 4096 // artifacts that are committed
)

// Config configures [Artifacts].
type Config struct {
	Store Store            // stays the caller's
	Max   int64            // bytes of one artifact; default DefaultMax
	Now   func() time.Time // default time.Now
	Log   *slog.Logger     // default: none
}

// Artifacts performs operations on a store. Its methods are safe for concurrent use.
type Artifacts struct {
	cfg Config

	mu   sync.Mutex
	made map[string]int // by digest, how many open sessions have committed it
}

// New returns the artifacts of a store.
func New(cfg Config) *Artifacts {
	if cfg.Max <= 0 {
		cfg.Max = DefaultMax
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = jskit.Logger(cfg.Log)
	return &Artifacts{cfg: cfg, made: map[string]int{}}
}

// Session performs the operations of one attempt. Do is safe for concurrent use.
type Session struct {
	of       *Artifacts
	cfg      Config
	begun    time.Time
	policy   func() access.Policy // that decides on an operation that begins now
	readable func(digest string) bool
	handles  handles

	mu   sync.Mutex
	made map[string]string // content type by digest, of what the attempt has committed
	name map[string]string // digest by name, likewise
}

// Session returns a session under a policy. Besides what it makes itself, the attempt may
// read the digests for which readable returns true, nil for none: those that occur in its
// input or configuration. The caller closes the session.
func (a *Artifacts) Session(policy func() access.Policy, readable func(digest string) bool) *Session {
	return &Session{of: a, cfg: a.cfg, begun: a.cfg.Now(), policy: policy, readable: readable, made: map[string]string{}, name: map[string]string{}}
}

// Mentioned is the rule of what an attempt may read for the JSON of its input and
// configuration: the digests that occur there.
func Mentioned(texts ...[]byte) func(digest string) bool {
	return func(digest string) bool {
		return slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(text, []byte(digest)) })
	}
}

// Close closes all handles and removes what is not committed. It waits for operations on
// them; operations that begin later fail as canceled. What the attempt has committed long
// ago is retained: its result is recorded only now.
func (s *Session) Close(ctx context.Context) {
	for _, h := range s.handles.end() {
		if err := h.close(ctx); err != nil {
			s.cfg.Log.Warn("an artifact could not be closed", "error", err)
		}
	}
	s.mu.Lock()
	made := slices.Collect(maps.Keys(s.made))
	clear(s.made)
	s.mu.Unlock()
	if now := s.cfg.Now(); len(made) > 0 && now.Sub(s.begun) > Grace/2 {
		if err := s.cfg.Store.Retain(ctx, made, now); err != nil {
			s.cfg.Log.Warn("artifacts of an attempt could not be retained", "error", err)
		}
	}
	s.of.release(made)
}

// Do performs an operation.
func (s *Session) Do(ctx context.Context, op *access.Operation) access.Answer {
	var do func(context.Context, *access.Operation) (access.Answer, *access.Fault)
	switch op.Kind {
	case access.KindArtifactCreate:
		do = s.create
	case access.KindArtifactWrite:
		do = s.write
	case access.KindArtifactCommit:
		do = s.commit
	case access.KindArtifactOpen:
		do = s.open
	case access.KindArtifactRead:
		do = s.read
	case access.KindArtifactClose:
		do = s.close
	default:
		return ops.Failed(ops.Invalid("%.64q is no operation on artifacts", op.Kind))
	}
	fault := s.check()
	if fault == nil {
		fault = ops.Ended(ctx, op.Kind)
	}
	var answer access.Answer
	if fault == nil {
		answer, fault = do(ctx, op)
	}
	if fault != nil {
		return ops.Failed(fault)
	}
	return answer
}

// check holds the use of artifacts against the policy.
func (s *Session) check() *access.Fault {
	const target, add = "artifacts", "artifacts = true"
	policy := s.policy()
	switch allow := policy.Allow; {
	case !policy.Grants.Artifacts:
		return ops.NotGranted(target, add)
	case allow != nil && !allow.Artifacts:
		return ops.NotAllowed(target, add, allow)
	}
	return nil
}

// fault is what an error of the store becomes. Texts of the file system name paths of the
// host, so they are logged and not passed on.
func (s *Session) fault(ctx context.Context, kind string, err error) *access.Fault {
	switch {
	case errors.Is(err, ErrFull):
		return ops.TooLarge("%s failed: %v", kind, ErrFull)
	case errors.Is(err, ErrNotFound):
		return &access.Fault{Code: access.CodeNotFound, Message: kind + " failed: " + ErrNotFound.Error()}
	case errors.Is(err, ErrDamaged):
		s.cfg.Log.Error("an artifact is damaged", "operation", kind, "error", err)
		return &access.Fault{Code: access.CodeDamaged, Message: kind + " failed: " + ErrDamaged.Error() + ": run the task again that has made it"}
	case isFile(err):
		s.cfg.Log.Error("an artifact's file cannot be used", "operation", kind, "error", err)
		return &access.Fault{Code: access.CodeInternal, Retryable: true, Message: kind + " failed: the host cannot use its directory of artifacts, its log has the reason"}
	}
	return ops.Wire(ctx, kind, err)
}
