package run

// Notice is one durable event. Revision and Index are its place
// in the journal: with Sum they name it forever, so that a notice that is given
// twice, after a crash, can be recognized.
type Notice struct {
	Revision uint64
	Sum      uint32 // of the commit, see [CommitSum]
	Index    int    // within the commit, from 0
	Event    Event
	Hops     int     // of the run's trigger, see [HeaderHops]
	Flow     string  // empty for an event that belongs to no run, though it may name one
	Record   *Record // of the run, with the event Finished only

	// RecordJSON is the record's JSON form, for observers that need it; nil when it
	// was not made or cannot be.
	RecordJSON []byte
}

// Receipt answers a request for a run.
type Receipt struct {
	Run      ID   // empty unless accepted
	Accepted bool // false: the trigger's filter rejected it, the position was decided before, or
	Limited  bool // as many runs of the flow are under way as its concurrency allows, and more are to be left out
	Repeated bool // the request's key was known: Run is the one that it made the first time
}
