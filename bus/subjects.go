package bus

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flowhost/flowhost/run"
)

// Names of the streams.
const (
	StreamJournal    = "FH_JOURNAL"
	StreamTriggers   = "FH_TRIGGERS"
	StreamEvents     = "FH_EVENTS"
	StreamDeadLetter = "FH_DEADLETTER"
	StreamHistory    = "FH_HISTORY"
	StreamLogs       = "FH_LOGS"
	StreamMarks      = "FH_MARKS"
	StreamOwner      = "FH_OWNER" // on external servers only
)

// Buckets of objects, in the journal's account.
const (
	BucketSnapshots = "FH_SNAPSHOTS"
	BucketBlobs     = "FH_BLOBS"
)

// The prefixes of subjects that a flow's name follows.
const (
	PrefixOwn        = "fh." // everything that is flowhost's
	PrefixJournal    = "fh.v1.journal."
	PrefixTrigger    = "fh.v1.trigger."
	PrefixRun        = "fh.v1.run."
	prefixEvents     = "fh.v1.events."
	prefixMark       = "fh.v1.mark."
	prefixOwner      = "fh.v1.owner."
	PrefixDeadLetter = "fh.v1.deadletter."
	PrefixHistory    = "fh.v1.history."
	PrefixParts      = "fh.v1.historypart."
	PrefixFlush      = "fh.v1.flush."
	PrefixLog        = "fh.v1.log."
	PrefixAPI        = "fh.v1.api."
	PrefixAPIRun     = "fh.v1.api.run."
)

// Headers of messages, beside those of NATS.
const (
	HeaderWait      = "Fh-Wait"      // of a request: answer with the run's record, wait at most this long ("30s")
	HeaderKey       = "Fh-Key"       // of what asks for a run: the same key for the same flow makes one run within a day
	HeaderParams    = "Fh-Params"    // of a request for a run: values of its params, a JSON object
	HeaderReason    = "Fh-Reason"    // of a dead letter: what is wrong and what to do
	HeaderCode      = "Fh-Code"      // of a dead letter: one of the run.Request codes
	HeaderSubject   = "Fh-Subject"   // of a dead letter: where the message was published
	HeaderNoBody    = "Fh-No-Body"   // of a dead letter: the size in bytes of a body too large to be kept with it
	HeaderTrigger   = "Fh-Trigger"   // of a dead letter: the trigger of the flow that the message was for
	HeaderForWait   = "Fh-For-Wait"  // of a dead letter: the wait that the message was for, as "<run>/<wait>"
	HeaderRevision  = "Fh-Revision"  // of a finished run's record: the journal's revision that holds the run's end
	HeaderIndex     = "Fh-Index"     // of a finished run's record: the place of the run's end in the commit, from 0
	HeaderRun       = "Fh-Run"       // of lines of a log, and of a finished run's record: the run
	HeaderSummary   = "Fh-Summary"   // of a finished run's record: its run.Summary, JSON
	HeaderParts     = "Fh-Parts"     // of a record that is cut short: the Nats-Msg-Id of the last of the parts that hold it whole
	HeaderArtifacts = "Fh-Artifacts" // of a finished run's record: how many artifacts it refers to; absent for none
	HeaderTask      = "Fh-Task"      // of lines of a log: the task that wrote them
	HeaderAttempt   = "Fh-Attempt"   // of lines of a log: its attempt, from 1
)

// SourceTriggers is the source of positions in FH_TRIGGERS.
const SourceTriggers = "triggers"

// StreamSource is the source of positions of a trigger that reads a stream.
func StreamSource(stream, flow, trigger string) string {
	return "stream/" + stream + "/" + flow + "/" + trigger
}

// JournalSubject is where a shard's commits are.
func JournalSubject(shard int) string { return PrefixJournal + strconv.Itoa(shard) }

// TriggerSubject is where a durable message asks for a run of the flow.
func TriggerSubject(flow string) string { return PrefixTrigger + flow }

// APISubject is where a verb is asked for.
func APISubject(verb string) string { return PrefixAPI + verb }

// RunSubject is where a request asks for a run of the flow.
func RunSubject(flow string) string { return PrefixAPIRun + flow }

// EventSubject is where a live event of a run is published. The kind is one of the
// run.Kind words.
func EventSubject(flow string, id run.ID, kind string) string {
	return PrefixRun + flow + "." + string(id) + "." + kind
}

// EventsSubject is where the stream FH_EVENTS has the events of a run.
func EventsSubject(flow string, id run.ID) string { return prefixEvents + flow + "." + string(id) }

// MarkSubject is where a shard's [journal.Mark] is.
func MarkSubject(shard int) string { return prefixMark + strconv.Itoa(shard) }

// OwnerSubject is where the owner of a shard's journal is.
func OwnerSubject(shard int) string { return prefixOwner + strconv.Itoa(shard) }

// DeadLetterSubject is where messages are kept that could not make a run of the
// flow.
func DeadLetterSubject(flow string) string { return PrefixDeadLetter + flow }

// HistorySubject is where the records of finished runs are kept.
func HistorySubject(flow string, state run.State) string {
	return PrefixHistory + flow + "." + string(state)
}

// HistorySubjects are all subjects of HistorySubject.
const HistorySubjects = PrefixHistory + "*.*"

// HistoryPartSubject is where the parts with a number, from 1, are of records of a
// HistorySubject. A stream that keeps so many messages of a subject keeps the part for
// as long as the record.
func HistoryPartSubject(record string, number int) string {
	return PrefixParts + strings.TrimPrefix(record, PrefixHistory) + "." + strconv.Itoa(number)
}

// historyPartSubjects are all subjects of historyPartSubject.
const historyPartSubjects = PrefixParts + "*.*.*"

// FlushSubject is where a stream takes what is stored and removed again only to
// have the server write its files.
func FlushSubject(stream string) string { return PrefixFlush + stream }

// LogSubject is where lines of the run's log are stored, with those of the other
// runs of the flow whose ids end with the same character: a server remembers each
// subject of a stream for as long as the stream has a message there.
func LogSubject(flow string, id run.ID) string {
	return PrefixLog + flow + "." + string(id[max(len(id)-1, 0):])
}

// BucketStream is the stream of a bucket of objects, as the NATS tools expect it.
func BucketStream(bucket string) string { return "OBJ_" + bucket }

// BucketSubjects are the subjects of that stream: of contents, and of names.
func BucketSubjects(bucket string) []string {
	return []string{"$O." + bucket + ".C.>", "$O." + bucket + ".M.>"}
}

// CheckToken reports whether a name can be one token of a subject: the subjects
// above take names that it accepts.
func CheckToken(name string) error {
	if name == "" {
		return fmt.Errorf("an empty name cannot be part of a subject")
	}
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(".*>", r) || r == utf8.RuneError
	}
	if i := strings.IndexFunc(name, bad); i >= 0 {
		return fmt.Errorf("%q cannot be part of a subject: '.', '*', '>', spaces and control characters are not allowed", name)
	}
	return nil
}

// CheckSubject reports whether a flow can listen to the subject: tokens with dots
// between them, "*" for any one token, ">" at the end for all that follow. Subjects
// that [run.ReservedSubject] knows are refused.
func CheckSubject(subject string) error {
	tokens := strings.Split(subject, ".")
	for i, token := range tokens {
		if token == "*" || token == ">" && i == len(tokens)-1 {
			continue
		}
		if err := CheckToken(token); err != nil {
			return fmt.Errorf("subject %q: %w", subject, err)
		}
	}
	if why := run.ReservedSubject(subject); why != "" {
		return fmt.Errorf("subject %q is reserved: %s", subject, why)
	}
	return nil
}

// CheckStream reports whether a trigger can read the stream.
func CheckStream(name string) error {
	if err := CheckToken(name); err != nil {
		return err
	}
	if why := run.ReservedStream(name); why != "" {
		return fmt.Errorf("stream %q is reserved: %s", name, why)
	}
	return nil
}
