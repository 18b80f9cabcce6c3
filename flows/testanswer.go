package flows

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

// Answer ends a wait in a test: of each run that comes to it.
type Answer struct {
	Range    hcl.Range       // of the block's header
	Wait     string          // its name; in a sub-flow after those of the tasks that run it, "release/approval"
	After    time.Duration   // the start of the tested run; 0: as soon as it waits
	Approval *run.Approval   // nil for a signal
	Payload  json.RawMessage // of a signal, valid JSON; nil for none
}

// What answers there are, as their blocks are called.
const (
	signalBlock  = "signal"
	approveBlock = "approve"
)

// answeredBy is the block that ends a wait, "" for one that ends by itself.
func (f WaitFor) answeredBy() string {
	switch f {
	case WaitSignal, WaitSubject:
		return signalBlock
	case WaitApproval:
		return approveBlock
	}
	return ""
}

// AnsweredBy is the block that ends a wait, "signal" or "approve"; "" for one that
// ends by itself.
func (t *Test) AnsweredBy(wait string) string {
	last := strings.LastIndex(wait, "/") + 1
	if task := t.task(wait[:last] + WaitPrefix + wait[last:]); task != nil && task.isWait() {
		return task.Wait.For.answeredBy()
	}
	return ""
}

// answersIn are the blocks of answers as they are written.
func answersIn(c *lang.Content) []*hcl.Block {
	blocks := append(slices.Clone(c.Blocks[signalBlock]), c.Blocks[approveBlock]...)
	slices.SortStableFunc(blocks, func(a, b *hcl.Block) int { return cmp.Compare(a.DefRange.Start.Byte, b.DefRange.Start.Byte) })
	return blocks
}

func (s *exprContext) decodeAnswer(t *Test, d *flowDecoder, b *hcl.Block) {
	words := signalSchema
	if b.Type == approveBlock {
		words = approveSchema
	}
	path, at := b.Labels[0], b.LabelRanges[0]
	s, c := s.decodeAt(b, words)
	_, wait := s.named(d, path, at, rootWord("wait"))
	if wait != nil && !s.answerable(wait, b) {
		return
	}
	for _, first := range t.Answers {
		if first.Wait == path {
			s.diags.Add(RuleDuplicate, at, "Duplicate answer", "The wait %q ends with what is at %s, and it ends once.", path, diag.Place(first.Range))
			return
		}
	}
	answer := &Answer{Range: b.DefRange, Wait: path, Payload: s.testedJSON(c.Arg("payload"))}
	answer.After, _ = s.duration(c.Arg("after"))
	if a := c.Arg("after"); a != nil && t.Until > 0 && answer.After >= t.Until {
		s.diags.Add(RuleValue, a.Expr.Range(), "After the end", "The test ends before, %s after it has begun.", t.Until)
	}
	if b.Type == approveBlock {
		answer.Approval, answer.Payload = &run.Approval{Approved: true, Payload: answer.Payload}, nil
		if approved, ok := s.flag(c.Arg("approved")); ok {
			answer.Approval.Approved = approved
		}
		answer.Approval.By, _ = s.text(c.Arg("by"))
		answer.Approval.Reason, _ = s.text(c.Arg("reason"))
	}
	t.Answers = append(t.Answers, answer)
}

// answerable reports whether a wait can end with an answer.
func (s *exprContext) answerable(t *Task, b *hcl.Block) bool {
	path, by := b.Labels[0], t.Wait.For.answeredBy()
	switch {
	case t.Wait.For == "" || by == b.Type: // what is wrong with the wait is reported there
		return true
	case by == "":
		s.diags.Add(RuleConflict, b.LabelRanges[0], "Wait that ends by itself", "The wait %q, at %s, has %s = …: virtual time ends it. Leave the %s block out.", path, t.At(), t.Wait.For, b.Type)
	default:
		s.diags.Add(RuleConflict, b.TypeRange, "Wrong kind of wait", "The wait %q, at %s, has %s = …: write %s %q.", path, t.At(), t.Wait.For, by, path)
	}
	return false
}
