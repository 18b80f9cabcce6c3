package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/nats-io/nats.go"
)

// streams that there may be, and one of the operator's.
var streams = []string{
	"FH_JOURNAL", "FH_TRIGGERS", "FH_EVENTS", "FH_HISTORY", "FH_LOGS", "FH_DEADLETTER", "FH_DEFINITIONS",
	"KV_FH_STATE", "OBJ_FH_BLOBS", "FH_RUNS", "OPERATORS",
}

// replies is every subject that a client may publish on, with every reply that
// would make an answer a command.
func replies() []attack {
	part := func(i, of int, short bool) attack {
		return attack{
			name: fmt.Sprintf("reply/part %d of %d", i+1, of), promise: "an answer is no command", flows: openingFlows, short: short,
			run: func(ctx context.Context, s *stage) error { return trickReplies(ctx, s, i, of) },
		}
	}
	return []attack{part(0, 2, true), part(1, 2, false)}
}

// commands is subjects on which an answer would do something.
func commands() []string {
	var all []string
	for _, stream := range streams {
		for _, verb := range []string{"STREAM.DELETE", "STREAM.PURGE", "STREAM.UPDATE", "STREAM.CREATE", "STREAM.MSG.DELETE", "STREAM.SNAPSHOT",
			"STREAM.RESTORE", "STREAM.LEADER.STEPDOWN", "CONSUMER.CREATE", "CONSUMER.DURABLE.CREATE"} {
			all = append(all, "$JS.API."+verb+"."+stream)
		}
		for _, consumer := range []string{"engine", "flowhost", "history", "triggers"} {
			all = append(all, "$JS.API.CONSUMER.DELETE."+stream+"."+consumer, "$JS.API.CONSUMER.MSG.NEXT."+stream+"."+consumer,
				"$JS.ACK."+stream+"."+consumer+".1.1.1.1.1")
		}
	}
	return append(all,
		"fh.v1.journal.0", "fh.v1.run.neighbour.01JZZZZZZZZZZZZZZZZZZZZZZZ.finished", "fh.v1.deadletter.neighbour", "fh.v1.log.neighbour.0",
		"fh.v1.history.0", "fh.v1.trigger.passes", "fh.v1.api.run.passes", "fh.v1.api.cancel", "attack.in", "attack.none",
		"$JS.API.ACCOUNT.PURGE.APP", "$JS.API.SERVER.REMOVE", "$SYS.REQ.SERVER.RELOAD", "$SYS.REQ.CLAIMS.UPDATE", "$SRV.PING", "$SRV.INFO.flowhost",
		"_INBOX.engine.1", "_R_.x", "_GR_.x", "$NRG.V.x", "$NRG.AE.x", "$KV.x.y", "$O.x.M.y")
}

// allowed is subjects on which a client may publish, now or in an earlier version.
func allowed() []string {
	all := []string{"fh.v1.trigger.passes", "fh.v1.trigger.nobody", "fh.v1.api.run.passes", "attack.in", "$SRV.PING.flowhost",
		"$JS.API.CONSUMER.CREATE.FH_EVENTS.tricks.fh.v1.run.nobody.>", "$JS.API.CONSUMER.MSG.NEXT.FH_EVENTS.tricks",
		"$JS.API.CONSUMER.INFO.FH_EVENTS.tricks", "$JS.API.CONSUMER.DELETE.FH_EVENTS.other", "$JS.API.STREAM.INFO.FH_EVENTS"}
	for _, verb := range verbs {
		all = append(all, "fh.v1.api."+verb)
	}
	return all
}

// trickReplies publishes them in an order by chance, a part of them.
func trickReplies(ctx context.Context, s *stage, part, of int) error {
	nc, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	// A consumer of its own on events, where clients may have one.
	nc.Publish("$JS.API.CONSUMER.CREATE.FH_EVENTS.tricks.fh.v1.run.nobody.>",
		[]byte(`{"stream_name":"FH_EVENTS","config":{"name":"tricks","filter_subject":"fh.v1.run.nobody.>","ack_policy":"none","inactive_threshold":600000000000}}`))
	type trick struct{ subject, reply string }
	var all []trick
	for _, subject := range allowed() {
		for _, reply := range commands() {
			all = append(all, trick{subject, reply})
		}
	}
	chance := rand.New(rand.NewPCG(1, 14))
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	bodies := []string{`{}`, ``, `{"no_wait":true,"batch":1}`, `{"limit":1}`, `null`}
	var i int
	for _, t := range slices.Collect(slices.Chunk(all, (len(all)+of-1)/of))[part] {
		for _, body := range bodies {
			i++
			err := nc.PublishMsg(&nats.Msg{Subject: t.subject, Reply: t.reply, Data: []byte(body)})
			if err != nil || ctx.Err() != nil {
				return err
			}
		}
		if i%100 == 0 { // as fast as it is answered: a flood is another attack
			if _, err := ask[struct{}](ctx, nc, "fh.v1.api.limits", "", nil); err != nil {
				return err
			}
		}
	}
	return nc.FlushWithContext(ctx)
}
