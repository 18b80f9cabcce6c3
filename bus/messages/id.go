package messages

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// MaxPublished is how many different messages an attempt publishes at most: their ids are
// remembered.
const MaxPublished = 1 << 16

// content names what a run, task and key publish on a subject.
type content [24]byte

func contentOf(caller *access.Caller, subject string, body []byte) content {
	digest := sha256.Sum256(body)
	h := sha256.New()
	for _, part := range []string{caller.Run, caller.Task, caller.Key, subject, string(digest[:])} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return content(h.Sum(nil))
}

// id is the Nats-Msg-Id of the message with this content and place among them.
func (c content) id(place uint32) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32(c[:], place))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

// places gives the messages of an attempt with equal contents their places, from 0. The
// zero value is ready for use.
type places struct {
	mu   sync.Mutex
	next map[content]uint32
	free map[content][]uint32 // of messages that may not have been published
}

// take gives the next place. A message that failed and is published again by the same
// attempt gets its place again.
func (p *places) take(c content) (uint32, *access.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if free := p.free[c]; len(free) > 0 {
		at := slices.Index(free, slices.Min(free))
		place := free[at]
		if free = slices.Delete(free, at, at+1); len(free) > 0 {
			p.free[c] = free
		} else {
			delete(p.free, c)
		}
		return place, nil
	}
	place, known := p.next[c]
	if !known && len(p.next) >= MaxPublished {
		return 0, &access.Fault{Code: access.CodeBudget,
			Message: "publish failed: the attempt has published 65536 different messages: publish the others in another task"}
	}
	if p.next == nil {
		p.next, p.free = map[content]uint32{}, map[content][]uint32{}
	}
	if place == ^uint32(0) {
		return 0, ops.Invalid("publish failed: the attempt has published this message too often")
	}
	p.next[c] = place + 1
	return place, nil
}

// giveBack frees the place of a message that may not have been published.
func (p *places) giveBack(c content, place uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[c] = append(p.free[c], place)
}
