package hostile

import (
	"cmp"
	"slices"
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

	deadline time.Duration // of each call; default 100 ms
	cancel   time.Duration // after which each call is canceled; default: it is not
	prepares time.Duration // bound of decoding and compiling; default 2 s
	answers  time.Duration // bound of each call; default 2 s, far above the deadline as machines are shared
	peak     int64         // bound of the process's resident set in MiB; default 200
	limits   run.Limits
	abandon  bool // nobody waits for it to be prepared
	granted  bool // a folder for reading, see newFolder
	writes   bool // and for writing
	slow     bool // left out of the short selection
}

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
	a.deadline = cmp.Or(a.deadline, 100*time.Millisecond)
	a.prepares = timeFactor * cmp.Or(a.prepares, 2*time.Second)
	a.answers = timeFactor * cmp.Or(a.answers, 2*time.Second)
	a.peak = memoryFactor * cmp.Or(a.peak, 200)
	return a
}

// patience bounds a case as a whole.
func (a attack) patience() time.Duration {
	return a.prepares + time.Duration(len(a.calls))*a.answers + goodBound
}

// corpus is all cases.
func corpus() []attack {
	all := slices.Concat(decodeBombs(), compileBombs(), branchBombs(), unaccounted(), loops(), recursions(), memoryBombs(), tableBombs(),
		floods(), files(), grantedFiles(), sleeps(), exitsEarly(), badPointers(), spoilers(), reservedNames(), manifests(), canceled(), yields())
	for i := range all {
		all[i] = all[i].withDefaults()
	}
	return all
}
