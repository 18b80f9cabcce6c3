package run

// Notice tells of one event that is durable. Revision and Index are its place
// in the journal: they name it for ever, so that a notice that is given twice,
// after a crash, can be recognised.
type Notice struct {
	Revision uint64
	Index    int // within the commit, from 0
	Event    Event
	Flow     string
	Record   *Record // of the run, with the event Finished only
}

// Receipt answers a request for a run.
type Receipt struct {
	Run      ID   // empty unless accepted
	Accepted bool // false: the trigger's filter said no, or the position was decided before
}
