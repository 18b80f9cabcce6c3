package flowsim

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/run"
)

// Source is where the behavior of a call came from.
type Source string

// Sources.
const (
	FromChance  Source = "drawn"   // of lengths and ends, by the default distributions
	FromHistory Source = "history" // drawn from runs that there were
	FromMock    Source = "mock"
	FromFlag    Source = "stated"
	FromSchema  Source = "schema" // of outputs: made from what the function states of them
	FromNothing Source = "null"   // of outputs: nothing is known of them
)

// Sources are those of one task.
type Sources struct {
	Task                string
	Takes, Ends, Output Source // empty for what no call came to
}

// known is what has been found out about tasks while runs were made.
type known struct {
	config  *Config
	sources map[string]*Sources
	samples map[string]json.RawMessage
}

func newKnown(c *Config) *known {
	return &known{config: c, sources: map[string]*Sources{}, samples: map[string]json.RawMessage{}}
}

// of gives the sources of a call, to be noted; those of sub-flows are not kept.
func (k *known) of(call *run.Call) *Sources {
	if call.Flow != k.config.Flow.Name {
		return &Sources{}
	}
	s := k.sources[call.Task]
	if s == nil {
		s = &Sources{Task: call.Task, Takes: FromChance, Ends: FromChance}
		k.sources[call.Task] = s
	}
	return s
}

// output is the output of a successful call that nothing else determines.
func (t *trial) output(call *run.Call, choice uint64, sources *Sources) json.RawMessage {
	if output := t.pastOutput(call, choice); output != nil {
		sources.Output = FromHistory
		return output
	}
	if t.own(call) {
		if output := t.known.sample(call.Task); output != nil {
			sources.Output = FromSchema
			return output
		}
	}
	sources.Output = FromNothing
	return json.RawMessage("null")
}

// pastOutput is what the donor's task, or its item, gave, otherwise what any has;
// nil when there is none.
func (t *trial) pastOutput(call *run.Call, choice uint64) json.RawMessage {
	past := t.past(call)
	if past == nil {
		return nil
	}
	if t.donor != nil {
		if output := t.donor.outputs[run.TaskRef{Task: call.Task, Key: call.Key}]; output != nil {
			return output
		}
	}
	return past.output(choice)
}

// sample is nil when nothing is known.
func (k *known) sample(task string) json.RawMessage {
	sample, asked := k.samples[task]
	if !asked && k.config.Sample != nil {
		if spec := k.config.Flow.Task(task); spec != nil {
			sample = k.config.Sample(spec)
		}
		k.samples[task] = sample
	}
	return sample
}

// notEvaluated is how a call ends whose mock cannot be evaluated.
func notEvaluated(diags hcl.Diagnostics) *run.Failure {
	d := diags[0]
	f := &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeExpression, Message: d.Summary + "; " + d.Detail}
	if d.Subject != nil {
		f.Message = fmt.Sprintf("its mock, %s:%d: %s", filepath.Base(d.Subject.Filename), d.Subject.Start.Line, f.Message)
	}
	return f
}
