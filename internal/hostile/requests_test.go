package hostile

import (
	"context"
	"fmt"
	"strings"
)

// verbs of the API, see docs/nats.md.
var verbs = []string{
	"list", "get", "watch", "logs", "cancel", "retry", "signal", "approve", "flows", "deployed", "limits", "schedules",
	"pause", "resume", "fire", "backfill", "backfills", "cancel_backfill",
}

// requests is every verb with bodies that no command sends.
func requests() []attack {
	var all []attack
	for name, body := range hostileBodies() {
		all = append(all, attack{
			name: "request/" + name, promise: "a request takes no more than its answer is worth", flows: openingFlows, short: name == "cursors",
			run: func(ctx context.Context, s *stage) error {
				nc, err := s.client(ctx)
				if err != nil {
					return err
				}
				defer nc.Close()
				b := batchOf(nc)
				for _, verb := range verbs {
					b.send("fh.v1.api."+verb, body, nil)
				}
				return b.await(ctx)
			},
		})
	}
	return all
}

// hostileBodies holds fields of all verbs: what one does not know is an error of
// its own.
func hostileBodies() map[string]string {
	const nobody = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
	long := strings.Repeat("a", 1<<20)
	bodies := map[string]string{
		"empty":          "",
		"null":           "null",
		"no object":      "[1,2,3]",
		"unknown field":  `{"nothing":1}`,
		"unknown fields": "{" + repeatTo(1<<20, func(i int) string { return fmt.Sprintf(`"f%d":%d`, i, i) }) + "}",
		"depth":          `{"params":` + strings.Repeat("[", 4<<20),
		"wrong types":    `{"run":1,"flow":[],"limit":"many","states":"all","after":{},"before":7,"task":true}`,
		"cursors":        fmt.Sprintf(`{"after":%q}`, long),
		"cursors before": fmt.Sprintf(`{"before":%q}`, "\x00\xff~~~"+nobody),
		"huge limit":     `{"limit":9223372036854775807}`,
		"negative limit": `{"limit":-9223372036854775808}`,
		"endless limit":  `{"limit":1e999999999}`,
		"digits":         `{"limit":` + strings.Repeat("9", 1<<20) + `}`,
		"many states":    `{"states":[` + repeatTo(1<<20, func(int) string { return `"failed"` }) + `]}`,
		"all time":       `{"since":"0001-01-01T00:00:00Z","until":"9999-12-31T23:59:59Z","children":true,"limit":1000}`,
		"long flow":      fmt.Sprintf(`{"flow":%q}`, long),
		"long run":       fmt.Sprintf(`{"run":%q,"task":%q}`, long, long),
		"nobody's run":   fmt.Sprintf(`{"run":%q}`, nobody),
		"nobody's task":  fmt.Sprintf(`{"run":%q,"task":"x","key":"y","reason":%q}`, nobody, long[:1000]),
		"within":         fmt.Sprintf(`{"run":%q,"task":"x","within":[%s]}`, nobody, repeatTo(1<<20, func(int) string { return `{"task":"x","key":"y"}` })),
		"patterns":       fmt.Sprintf(`{"flow":%q,"trigger":%q}`, strings.Repeat("*", 10_000), strings.Repeat(">.", 10_000)),
		"all times":      `{"flow":"looks","trigger":"in","from":"1970-01-01T00:00:00Z","to":"2262-01-01T00:00:00Z"}`,
	}
	return bodies
}
