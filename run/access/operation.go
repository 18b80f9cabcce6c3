package access

import "encoding/json"

// Kinds of operations. A guest names the kind of each operation that it starts.
const (
	KindHTTP = "http"

	KindSQLQuery    = "sql.query"    // rows, a page at a time
	KindSQLNext     = "sql.next"     // the next page
	KindSQLExec     = "sql.exec"     // a statement without rows
	KindSQLBegin    = "sql.begin"    // a transaction, the connection's only one
	KindSQLCommit   = "sql.commit"   //
	KindSQLRollback = "sql.rollback" //
	KindSQLClose    = "sql.close"    // rows that are not read to their end

	KindKVGet    = "kv.get"
	KindKVPut    = "kv.put" // also compare-and-set
	KindKVDelete = "kv.delete"
	KindKVList   = "kv.list"

	KindPublish = "publish"
	KindRequest = "request"

	KindSecret = "secret"

	KindArtifactCreate = "artifact.create"
	KindArtifactWrite  = "artifact.write"
	KindArtifactCommit = "artifact.commit"
	KindArtifactOpen   = "artifact.open"
	KindArtifactRead   = "artifact.read"
	KindArtifactClose  = "artifact.close" // what is open, or not committed

	KindMail = "mail"

	KindProgress = "progress" // of the attempt, for people; needs no grant
	// KindHeartbeat says that the attempt is alive, as KindProgress does, and nothing else.
	KindHeartbeat = "heartbeat"
)

// Operation is one effect on the world that a guest asks for. It is a plain message, so that
// a worker elsewhere can forward it.
type Operation struct {
	Number int             // within the attempt, from 1
	Kind   string          //
	Head   json.RawMessage // an object of the form that the kind documents
	Body   []byte
}

// Answer is what became of an operation.
type Answer struct {
	Head  json.RawMessage // an object; of a failed operation, a Fault
	Body  []byte
	Fault *Fault // nil for an operation that was performed
}

// Codes of faults.
const (
	CodeDenied      = "denied"      // the grant, the operator's allow block or a rule refuses it
	CodeInvalid     = "invalid"     // the request itself is wrong
	CodeUnreachable = "unreachable" // nobody answered, or the connection broke
	CodeTimeout     = "timeout"     // no time is left, or the other side took too long
	CodeTooLarge    = "too_large"   // a bound of the operation was reached
	CodeConflict    = "conflict"    // another revision, a key that exists
	CodeNotFound    = "not_found"   // a key, a bucket, an artifact
	CodeRefused     = "refused"     // the other side refused it: credentials, a constraint, SQL syntax
	CodeBudget      = "budget"      // the operations of the attempt are used up
	CodeCanceled    = "canceled"    // the attempt ended meanwhile
	CodeDamaged     = "damaged"     // what is stored is not what was stored
	CodeInternal    = "internal"
)

// RuleOperator is the rule of a fault when the operator's allow block refuses.
const RuleOperator = "operator"

// Fault is why an operation was not performed, or what went wrong. Its texts contain no
// secret, and of a connection no address.
type Fault struct {
	Code         string `json:"code"`
	Message      string `json:"message"`
	Target       string `json:"target,omitempty"`         // what was asked for, in its canonical form, without credentials
	Rule         string `json:"rule,omitempty"`           // the rule that refused it: "private address", "not granted"
	Add          string `json:"add,omitempty"`            // the line that would grant it, if a line can
	Detail       string `json:"detail,omitempty"`         // of the other side: an SQLSTATE, a NATS code
	Retryable    bool   `json:"retryable,omitempty"`      // another attempt may succeed
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"` // and not sooner

	// Inside is the same fault for the operator, with addresses and paths. It never leaves
	// the host. Nil: the fault leaves nothing out.
	Inside *Fault `json:"-"`
}

func (f *Fault) Error() string { return f.Message }

// Full is the fault for the operator.
func (f *Fault) Full() *Fault {
	if f == nil || f.Inside == nil {
		return f
	}
	return f.Inside
}
