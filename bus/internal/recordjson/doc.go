// Package recordjson encodes the record of a run as JSON within a limit. It leaves out
// the items of fan-outs first, then the inputs and outputs of tasks, and marks the
// record as truncated.
package recordjson
