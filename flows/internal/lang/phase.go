package lang

// Phase is when an argument is evaluated, and so which values it may use.
type Phase int

const (
	Constant   Phase = iota // while loading, before any name is known
	Load                    // while loading: var, local, flow
	LoadPlugin              // while loading: also plugin
	Fire                    // when a trigger fires: also trigger
	Key                     // when a trigger fires: also param
	Run                     // in a run: also run and task; error in on_failure
	Retry                   // when an attempt has failed: as running; error is the attempt's
	Own                     // read by its own decoder: types, lists of references
	Mock                    // of a test: when a call begins that is mocked
	Assert                  // of a test: when its runs are over
)

// Phases are the names of moments in the documentation.
var Phases = map[Phase]string{
	Constant: "constant", Load: "load", LoadPlugin: "load", Fire: "fire", Key: "key", Run: "run", Retry: "retry", Own: "own", Mock: "mock", Assert: "assert",
}
