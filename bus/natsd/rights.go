package natsd

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// rights are the subjects on which a user may publish and to which it may subscribe. No
// list allows everything but what is denied.
type rights struct {
	publish, publishNot     []string
	subscribe, subscribeNot []string
}

// rightsOf gives the rights of a user within its account. The client may publish on
// the subjects, too.
func rightsOf(user string, subjects []string) rights {
	switch user {
	case userOperator:
		// Whoever asks there learns from the server which inboxes the connections of the account have.
		return rights{
			publishNot:   []string{bus.InboxEngine + ".>", "$SYS.REQ.ACCOUNT.>", "$SYS.REQ.SERVER.>"},
			subscribeNot: []string{bus.InboxEngine + ".>"},
		}
	case userClient:
		return rights{
			publish:    append([]string{bus.PrefixTrigger + "*", bus.PrefixAPI + ">"}, subjects...),
			publishNot: operatorOnly(),
			subscribe:  []string{inboxClient + ".>", bus.PrefixRun + ">"},
		}
	}
	return rights{}
}

// operatorOnly are the requests that clients may not send: about messages of others, about
// what flows keep in buckets, and those that stop the flows of all.
func operatorOnly() []string {
	var subjects []string
	for _, verb := range []string{
		api.VerbDeadLetters, api.VerbSendDeadLetter, api.VerbDiscardDeadLetter, api.VerbPauseHost, api.VerbResumeHost, api.VerbDrain,
		api.VerbKVBuckets, api.VerbKVList, api.VerbKVGet, api.VerbKVPut, api.VerbKVDelete,
	} {
		subjects = append(subjects, bus.APISubject(verb))
	}
	return subjects
}

// text is the rights' part of a user in the server's configuration language.
func (r rights) text() string {
	var kinds []string
	for _, kind := range []struct {
		name       string
		allow, not []string
	}{{"publish", r.publish, r.publishNot}, {"subscribe", r.subscribe, r.subscribeNot}} {
		var lists []string
		for _, list := range []struct {
			name     string
			subjects []string
		}{{"allow", kind.allow}, {"deny", kind.not}} {
			if len(list.subjects) > 0 {
				lists = append(lists, list.name+": "+quoted(list.subjects))
			}
		}
		if len(lists) > 0 {
			kinds = append(kinds, kind.name+": { "+strings.Join(lists, ", ")+" }")
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return ", permissions: { " + strings.Join(kinds, ", ") + " }"
}

func quoted(subjects []string) string {
	all := make([]string, len(subjects))
	for i, s := range subjects {
		all[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// grantable gives the subjects on which the client user may be let publish, and names
// the others in the log.
func grantable(subjects []string, log *slog.Logger) []string {
	var granted []string
	for _, subject := range subjects {
		if reserved(subject) {
			log.Warn("the client user may not publish on a subject that covers flowhost's own: use the operator user", "subject", subject)
			continue
		}
		if !slices.Contains(granted, subject) {
			granted = append(granted, subject)
		}
	}
	return granted
}

// reserved reports whether a permission for the subject would reach the streams'
// management, the events or the replies to others.
func reserved(subject string) bool { return run.ReservedSubject(subject) != "" }

// disjoint gives subjects that cover the given ones and of which no two have a subject
// in common: the server delivers a message once for each import that it fits. It leaves
// out what can only be covered together with flowhost's own subjects.
func disjoint(subjects []string) []string {
	var apart []string
	for _, next := range subjects {
		for again := true; again; {
			again = false
			for i, other := range apart {
				if !server.SubjectsCollide(next, other) {
					continue
				}
				joined := join(next, other)
				if reserved(joined) {
					joined = other // next is left out
				}
				next, again = joined, true
				apart = slices.Delete(apart, i, i+1)
				break
			}
		}
		apart = append(apart, next)
	}
	return apart
}

// join gives the narrowest subject that covers two that have a subject in common.
func join(a, b string) string {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	var joined []string
	for i := range min(len(left), len(right)) {
		switch {
		case left[i] == ">" || right[i] == ">":
			return strings.Join(append(joined, ">"), ".")
		case left[i] == right[i]:
			joined = append(joined, left[i])
		default:
			joined = append(joined, "*")
		}
	}
	return strings.Join(joined, ".")
}
