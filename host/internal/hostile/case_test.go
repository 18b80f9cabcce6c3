package hostile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/run"
)

// attack is one case. Its fields state only what differs from the defaults.
type attack struct {
	name   string
	what   string // it attacks
	module func() []byte
	calls  []step // made one after the other; default: one of the module's only function, which ends with want
	want   string // see step

	deadline time.Duration // of each call; default 100 ms where one is to meet it, else a minute
	cancel   time.Duration // after which each call is canceled; default: it is not
	prepares time.Duration // bound of decoding and compiling; default 2 s
	answers  time.Duration // bound of each call; default 2 s
	peak     int64         // bound of the process's resident set in MiB; default 200
	limits   run.Limits
	either   bool // whether it is refused does not matter
	abandon  bool // nobody waits for it to be prepared
	granted  bool // a directory for reading, see newFolder
	writes   bool // and for writing
	slow     bool // left out of the short selection
}

// busyFactor is how much slower a machine may be than an idle one before a child
// is taken for stuck. What counts otherwise is the processor's time.
const busyFactor = 5

// goodBound is for a call of a small module that is new to the host.
const goodBound = timeFactor * 2 * time.Second

// step is one call of an attack.
type step struct {
	function string
	want     string // outcome and code, "timed_out timeout", or several of them with a bar between
}

// The endings of calls.
const (
	succeeds = "succeeded"
	timesOut = "timed_out timeout"
	refused  = "rejected module"
	traps    = "trapped trap"
	tooDeep  = "trapped depth"
	exits    = "trapped exit"

	isCanceled = "canceled canceled"
)

func (a attack) withDefaults() attack {
	if a.calls == nil {
		a.calls = []step{{"", a.want}}
	}
	meets := slices.ContainsFunc(a.calls, func(s step) bool { return strings.Contains(s.want, timesOut) })
	switch {
	case a.deadline != 0:
	case meets:
		a.deadline = 100 * time.Millisecond
	default: // how soon it has to answer is another question, which a busy machine does not answer
		a.deadline = time.Minute
	}
	a.prepares = timeFactor * cmp.Or(a.prepares, 2*time.Second)
	a.answers = timeFactor * cmp.Or(a.answers, 2*time.Second)
	a.peak = memoryFactor * cmp.Or(a.peak, 200)
	return a
}

// patience bounds a case as a whole.
func (a attack) patience() time.Duration {
	return busyFactor * (a.prepares + time.Duration(len(a.calls))*a.answers + goodBound)
}

// corpus is all cases.
func corpus() []attack {
	all := slices.Concat(decodeBombs(), compileBombs(), branchBombs(), unaccounted(), loops(), recursions(), memoryBombs(), tableBombs(),
		floods(), files(), grantedFiles(), sleeps(), exitsEarly(), badPointers(), spoilers(), reservedNames(), manifests(), canceled(), yields())
	all = append(all, generatedModules()...)
	for i := range all {
		all[i] = all[i].withDefaults()
	}
	return all
}
