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
)

// The prefixes of subjects that a flow's name follows.
const (
	prefixOwn        = "fh." // everything that is flowhost's
	prefixJournal    = "fh.v1.journal."
	prefixTrigger    = "fh.v1.trigger."
	prefixRun        = "fh.v1.run."
	prefixEvents     = "fh.v1.events."
	prefixMark       = "fh.v1.mark."
	prefixDeadLetter = "fh.v1.deadletter."
	prefixHistory    = "fh.v1.history."
	prefixParts      = "fh.v1.historypart."
	prefixFlush      = "fh.v1.flush."
	prefixLog        = "fh.v1.log."
	prefixAPIRun     = "fh.v1.api.run."
)

// Headers of messages, beside those of NATS.
const (
	HeaderWait     = "Fh-Wait"     // of a request: answer with the run's record, wait at most this long ("30s")
	HeaderKey      = "Fh-Key"      // of what asks for a run: the same key for the same flow makes one run within a day
	HeaderParams   = "Fh-Params"   // of a request for a run: values of its params, a JSON object
	HeaderReason   = "Fh-Reason"   // of a dead letter: what is wrong and what to do
	HeaderCode     = "Fh-Code"     // of a dead letter: one of the run.Request codes
	HeaderSubject  = "Fh-Subject"  // of a dead letter: where the message was published
	HeaderNoBody   = "Fh-No-Body"  // of a dead letter: the size in bytes of a body too large to be kept with it
	HeaderRevision = "Fh-Revision" // of a finished run's record: the journal's revision that holds the run's end
	HeaderIndex    = "Fh-Index"    // of a finished run's record: the place of the run's end in the commit, from 0
	HeaderRun      = "Fh-Run"      // of lines of a log, and of a finished run's record: the run
	HeaderSummary  = "Fh-Summary"  // of a finished run's record: its run.Summary, JSON
	HeaderParts    = "Fh-Parts"    // of a record that is cut short: the Nats-Msg-Id of the last of the parts that hold it whole
	HeaderTask     = "Fh-Task"     // of lines of a log: the task that wrote them
	HeaderAttempt  = "Fh-Attempt"  // of lines of a log: its attempt, from 1
)

// SourceTriggers is the source of positions in FH_TRIGGERS.
const SourceTriggers = "triggers"

// StreamSource is the source of positions of a trigger that reads a stream.
func StreamSource(stream, flow, trigger string) string {
	return "stream/" + stream + "/" + flow + "/" + trigger
}

// JournalSubject is where a shard's commits are.
func JournalSubject(shard int) string { return prefixJournal + strconv.Itoa(shard) }

// TriggerSubject is where a durable message asks for a run of the flow.
func TriggerSubject(flow string) string { return prefixTrigger + flow }

// RunSubject is where a request asks for a run of the flow.
func RunSubject(flow string) string { return prefixAPIRun + flow }

// EventSubject is where a live event of a run is published. The kind is one of the
// run.Kind words.
func EventSubject(flow string, id run.ID, kind string) string {
	return prefixRun + flow + "." + string(id) + "." + kind
}

// EventsSubject is where the stream FH_EVENTS has the events of a run.
func EventsSubject(flow string, id run.ID) string { return prefixEvents + flow + "." + string(id) }

// markSubject is where a shard's [Mark] is.
func markSubject(shard int) string { return prefixMark + strconv.Itoa(shard) }

// DeadLetterSubject is where messages are kept that could not make a run of the
// flow.
func DeadLetterSubject(flow string) string { return prefixDeadLetter + flow }

// HistorySubject is where the records of finished runs are kept.
func HistorySubject(flow string, state run.State) string {
	return prefixHistory + flow + "." + string(state)
}

// historySubjects are all subjects of HistorySubject.
const historySubjects = prefixHistory + "*.*"

// historyPartSubject is where the parts with a number, from 1, are of records of a
// HistorySubject. A stream that keeps so many messages of a subject keeps the part for
// as long as the record.
func historyPartSubject(record string, number int) string {
	return prefixParts + strings.TrimPrefix(record, prefixHistory) + "." + strconv.Itoa(number)
}

// historyPartSubjects are all subjects of historyPartSubject.
const historyPartSubjects = prefixParts + "*.*.*"

// flushSubject is where a stream takes what is stored and removed again only to
// have the server write its files.
func flushSubject(stream string) string { return prefixFlush + stream }

// LogSubject is where lines of the run's log are stored, with those of the other
// runs of the flow whose ids end with the same character: a server remembers each
// subject of a stream for as long as the stream has a message there.
func LogSubject(flow string, id run.ID) string {
	return prefixLog + flow + "." + string(id[max(len(id)-1, 0):])
}

// CheckToken tells whether a name can be one token of a subject: the subjects
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

// CheckSubject tells whether a flow can listen to the subject: tokens with dots
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

// checkStream tells whether a trigger can read the stream.
func checkStream(name string) error {
	if err := CheckToken(name); err != nil {
		return err
	}
	if why := run.ReservedStream(name); why != "" {
		return fmt.Errorf("stream %q is reserved: %s", name, why)
	}
	return nil
}
