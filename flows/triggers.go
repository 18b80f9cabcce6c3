package flows

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

func (d *flowDecoder) decodeTrigger(b *hcl.Block) {
	s := d.context
	kind := b.Labels[0]
	w, known := triggerKinds[kind]
	switch {
	case !known:
		s.diags.Add(RuleUnknownBlock, b.LabelRanges[0], "Unknown kind of trigger", "There is no trigger %q.%s", kind, diag.DidYouMean(kind, "", []string{"schedule", "message", "flow"}))
		return
	case w == nil:
		lang.NotYet(s.diags, kind, "a trigger", b.LabelRanges[0])
		return
	}
	name, at, ok := s.module.label(b)
	if !ok {
		return
	}
	if first := d.triggers[name]; first != nil {
		s.diags.Duplicate("trigger", name, at, first.Range)
		return
	}
	inner, c := s.decodeAt(b, w)
	t := &Trigger{Name: name, Kind: run.TriggerKind(kind), Enabled: true, Range: b.DefRange}
	if on, ok := inner.flag(c.Arg("enabled")); ok {
		t.Enabled = on
	}
	switch t.Kind {
	case run.TriggerSchedule:
		inner.schedule(t, c)
	case run.TriggerMessage:
		inner.message(t, c)
		inner.takes(t, c.Arg("payload"))
		t.filter = inner.condition(c.Arg("filter"))
	case run.TriggerFlow:
		inner.follows(t, c)
		t.filter = inner.condition(c.Arg("filter"))
	}
	d.stated[t] = c.Arg("params")
	t.params = inner.fitting(d.stated[t], hasFields)
	d.triggers[name] = t
	d.flow.Triggers = append(d.flow.Triggers, t)
}

func hasFields(t cty.Type) bool { return t.IsObjectType() || t.IsMapType() }

func (s *exprContext) message(t *Trigger, c *lang.Content) {
	subject := c.Arg("subject")
	t.Subject, _ = s.text(subject)
	switch {
	case subject == nil || t.Subject == "":
	case !isSubject(t.Subject):
		s.diags.Add(RuleSubject, subject.Expr.Range(), "Not a subject",
			"%q is not a subject of NATS: tokens are joined by dots, hold no spaces, and * and > are whole tokens, > only the last.", t.Subject)
	case run.ReservedSubject(t.Subject) != "":
		s.diags.Add(RuleReserved, subject.Expr.Range(), "Reserved subject", "A flow cannot listen to %q: %s.", t.Subject, run.ReservedSubject(t.Subject))
	}
	t.Stream, _ = s.text(c.Arg("stream"))
	if why := run.ReservedStream(t.Stream); why != "" && isToken(t.Stream) {
		s.diags.Add(RuleReserved, c.Arg("stream").Expr.Range(), "Reserved stream", "A flow cannot read stream %q: %s.", t.Stream, why)
	}
	t.Durable, _ = s.text(c.Arg("durable"))
	for _, a := range []*hcl.Attribute{c.Arg("stream"), c.Arg("durable")} {
		if v, ok := s.text(a); ok && !isToken(v) {
			s.diags.Add(RuleName, a.Expr.Range(), "Name cannot be used", "%q is not a name for NATS: use letters, digits, - and _ only.", v)
		}
	}
	if stream, durable := c.Arg("stream"), c.Arg("durable"); (stream == nil) != (durable == nil) {
		s.diags.Add(RuleMissing, c.At, "stream and durable", "To consume from JetStream, give both stream and durable; for plain messages give neither.")
	}
}

// isSubject reports whether s is a subject that can be subscribed to.
func isSubject(s string) bool {
	if strings.ContainsAny(s, " \t\r\n\x00") {
		return false
	}
	tokens := strings.Split(s, ".")
	for i, token := range tokens {
		wild := strings.ContainsAny(token, "*>") && len(token) > 1
		if token == "" || wild || (token == ">" && i < len(tokens)-1) {
			return false
		}
	}
	return true
}
