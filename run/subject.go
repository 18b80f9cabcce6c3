package run

import "strings"

// ReservedSubject reports why flows may not listen to a subject or a pattern of
// subjects, "" when they may. Reserved are flowhost's own subjects, those of the NATS
// server and inboxes: a flow on them would start itself, and read what others ask
// for and are answered. A pattern that contains one of them is reserved, too.
func ReservedSubject(subject string) string {
	first, _, _ := strings.Cut(subject, ".")
	switch {
	case first == "fh":
		return `subjects that begin with "fh." are flowhost's own: to start after runs of another flow, use a trigger "flow"`
	case strings.HasPrefix(first, "$"):
		return `subjects that begin with "$" belong to the NATS server`
	case strings.HasPrefix(first, "_"):
		return `subjects that begin with "_" are inboxes, where the answers to requests of others arrive`
	case first == "*", first == ">":
		return `it contains the subjects of flowhost and of the NATS server: begin with a token of your own, as in "orders.>"`
	}
	return ""
}

// reservedStreams begin the names of streams that are not read as streams.
var reservedStreams = []struct{ prefix, reason string }{
	{"FH_", `streams whose names begin with "FH_" are flowhost's own: to start after runs of another flow, use a trigger "flow"`},
	{"KV_", `streams whose names begin with "KV_" hold key-value buckets, on subjects of the NATS server`},
	{"OBJ_", `streams whose names begin with "OBJ_" hold object stores, on subjects of the NATS server`},
	{"$", `names that begin with "$" belong to the NATS server`},
	{"_", `names that begin with "_" belong to the NATS server`},
}

// ReservedStream reports why triggers may not read a stream, "" when they may.
func ReservedStream(name string) string {
	for _, reserved := range reservedStreams {
		if strings.HasPrefix(name, reserved.prefix) {
			return reserved.reason
		}
	}
	return ""
}
