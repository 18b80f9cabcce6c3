package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/run"
)

// eachPlan is what makes a task run for each of several items.
type eachPlan struct {
	kind   eachKind
	n      int         // of items, where they are written out
	max    int         // max_parallel; 0 for none
	guests []guestPlan // what they do, in turn
}

type eachKind int

const (
	eachList    eachKind = iota
	eachObject           // of which the fields are not in order
	eachSet              // of texts
	eachPayload          // trigger.payload.items: a list or an object
	eachOutputs          // outputs of others, in a list
	eachNull             // cannot be fanned out, known in the run only
)

func randomEach(rng *rand.Rand, inputs []string) *eachPlan {
	e := &eachPlan{kind: pick(rng, eachList, eachObject, eachSet, eachPayload, eachPayload, eachOutputs), n: rng.IntN(7)}
	switch {
	case e.kind == eachOutputs && len(inputs) == 0:
		e.kind = eachList
	case chance(rng, 20):
		e.kind = eachNull
	}
	if chance(rng, 2) {
		e.max = 1 + rng.IntN(3)
	}
	for range 3 {
		g := randomGuest(rng)
		g.large = false
		e.guests = append(e.guests, g)
	}
	return e
}

func (e *eachPlan) hcl(b *strings.Builder, inputs []string) {
	list := make([]string, e.n)
	for i := range list {
		name := fieldName(e.n - 1 - i)
		list[i] = map[eachKind]string{eachObject: name + " = " + fmt.Sprint(e.n-1-i), eachSet: `"` + name + `"`}[e.kind]
		if e.kind == eachList {
			list[i] = fmt.Sprint(10 * i)
		}
	}
	items := strings.Join(list, ", ")
	text := map[eachKind]string{
		eachList: "[" + items + "]", eachObject: "{" + items + "}", eachSet: "toset([" + items + "])",
		eachPayload: "trigger.payload.items", eachOutputs: "[" + outputsOf(inputs) + "]", eachNull: "trigger.payload.n > 9 ? [] : null",
	}[e.kind]
	fmt.Fprintf(b, "    for_each = %s\n", text)
	if e.max > 0 {
		fmt.Fprintf(b, "    max_parallel = %d\n", e.max)
	}
}

// fieldName names the i-th field of an object: later ones come later.
func fieldName(i int) string { return string(rune('a' + i)) }

// randomItems are those of a payload.
func randomItems(rng *rand.Rand) json.RawMessage {
	list, object := []any{}, map[string]any{}
	for i := range rng.IntN(7) {
		list = append(list, i)
		object[fieldName(i)] = []int{i}
	}
	text, _ := json.Marshal(pick[any](rng, list, object))
	return text
}

// itemPlan is an item as the language says that it is.
type itemPlan struct {
	key   string
	value any
}

// items are those that a task is to be run for, and whether they have names; false
// when the expression cannot be evaluated.
func (s *story) items(t *taskPlan, p *partPlan) (items []itemPlan, named, ok bool) {
	add := func(key string, value any) { items = append(items, itemPlan{key, value}) }
	switch e := t.each; e.kind {
	case eachList:
		for i := range e.n {
			add(fmt.Sprint(i), float64(10*i))
		}
	case eachObject:
		for i := range e.n {
			add(fieldName(i), float64(i))
		}
		return items, true, true
	case eachSet:
		for i := range e.n {
			add(fieldName(i), fieldName(i))
		}
		return items, true, true
	case eachOutputs:
		for i, ref := range t.inputs {
			add(fmt.Sprint(i), s.end(p, p.find(ref)).output)
		}
	case eachPayload:
		return decodedItems(s.payload().Items)
	case eachNull:
		return nil, false, false
	}
	return items, false, true
}

// decodedItems are the items of JSON: fields in the order of their names.
func decodedItems(text json.RawMessage) (items []itemPlan, named, ok bool) {
	var list []any
	var object map[string]any
	if json.Unmarshal(text, &list) == nil {
		for i, value := range list {
			items = append(items, itemPlan{fmt.Sprint(i), value})
		}
		return items, false, true
	}
	if json.Unmarshal(text, &object) != nil {
		return nil, false, false
	}
	for _, key := range sortedKeys(object) {
		items = append(items, itemPlan{key, object[key]})
	}
	return items, true, true
}

// item is what an item of a fan-out does.
func (t *taskPlan) item(key string) *taskPlan {
	if key == "" {
		return t
	}
	item := *t
	item.key, item.guest = key, t.each.guests[int(key[0])%len(t.each.guests)]
	return &item
}

// checkFan follows a task that is fanned out.
func (s *story) checkFan(t *taskPlan, p *partPlan) error {
	got := s.task(t.name)
	items, named, ok := s.items(t, p)
	if got.Reused { // with the items that it had
		items, named, ok = decodedItems(s.blobs.whole(got.Items))
	}
	if !ok {
		if got.State != run.Failed || got.Failure == nil || got.Failure.Code != run.CodeExpression || got.Items != nil {
			return fmt.Errorf("it is %s (%v), and what it runs for cannot be evaluated", got.State, got.Failure)
		}
		return nil
	}
	recorded, object, _ := decodedItems(s.blobs.whole(got.Items))
	if fmt.Sprint(recorded, object) != fmt.Sprint(items, named) {
		return fmt.Errorf("it is run for %v, want %v", recorded, items)
	}
	if err := s.checkOrder(t, items); err != nil {
		return err
	}
	for i, item := range items {
		state := s.run.Task(run.TaskRef{Task: t.name, Key: item.key})
		if state == nil {
			continue
		}
		if err := s.checkItem(t.item(item.key), p, i, item, named, state); err != nil {
			return fmt.Errorf("item %s: %w", item.key, err)
		}
	}
	return s.checkFanEnd(t, items)
}

// tookAll reports whether all items of a fan-out were taken over.
func (s *story) tookAll(whole *run.TaskRun) bool {
	items, _, _ := decodedItems(s.blobs.whole(whole.Items))
	return !slices.ContainsFunc(items, func(i itemPlan) bool {
		state := s.run.Task(run.TaskRef{Task: whole.Task, Key: i.key})
		return state == nil || !state.Reused
	})
}

// checkOrder checks which items have begun, and when.
func (s *story) checkOrder(t *taskPlan, items []itemPlan) error {
	under, failed, last := map[string]bool{}, "", -1
	for _, e := range s.events {
		ref, begins, ends, well := taskEvent(e)
		if ref.Task != t.name || ref.Key == "" {
			continue
		}
		number := slices.IndexFunc(items, func(i itemPlan) bool { return i.key == ref.Key })
		switch {
		case number < 0:
			return fmt.Errorf("it has no item %s", ref.Key)
		case begins && !under[ref.Key]:
			under[ref.Key] = true
			if s.named() && ref == s.how.Target() {
				continue // the first, whatever has become of the others
			}
			if number < last {
				return fmt.Errorf("item %d begins after item %d", number, last)
			}
			last = number
			if failed != "" && !t.goesOn {
				return fmt.Errorf("item %s begins after item %s has failed", ref.Key, failed)
			}
			if t.each.max > 0 && len(under) > t.each.max {
				return fmt.Errorf("%d items are under way at once, and %d may be", len(under), t.each.max)
			}
		case ends:
			delete(under, ref.Key)
			if !well {
				failed = ref.Key
			}
		}
	}
	return nil
}

// taskEvent reports whether an event begins or ends a task, or an item.
func taskEvent(e run.Event) (ref run.TaskRef, begins, ends, well bool) {
	switch d := e.Data.(type) {
	case *run.AttemptStarted:
		return d.TaskRef, true, false, false
	case *run.ChildStarted:
		return d.TaskRef, true, false, false
	case *run.WaitStarted:
		return d.TaskRef, true, false, false
	case *run.WaitEnded:
		return d.TaskRef, false, true, d.State == run.Succeeded
	case *run.AttemptFinished:
		return d.TaskRef, false, d.RetryAt.IsZero(), d.Outcome == run.OutcomeSucceeded
	case *run.TaskEnded:
		return d.TaskRef, false, true, d.State == run.Succeeded
	}
	return run.TaskRef{}, false, false, false
}

func (s *story) checkItem(t *taskPlan, p *partPlan, number int, item itemPlan, named bool, state *run.TaskRun) error {
	var key any = item.key
	if !named {
		key = float64(number)
	}
	input := map[string]any{"key": key, "value": item.value, "index": float64(number)}
	switch {
	case !state.State.Done():
		return fmt.Errorf("it is %s", state.State)
	case state.Reused:
		return s.checkReused(t, p, state)
	case state.State == run.Canceled && state.Attempts == 0:
		return s.checkStopped(t)
	case t.input == inputBroken:
		if state.State != run.Failed || state.Failure.Code != run.CodeExpression || state.Attempts > 0 {
			return fmt.Errorf("it is %s (%v) after %d attempts, and its input cannot be evaluated", state.State, state.Failure, state.Attempts)
		}
		return nil
	}
	if t.call != nil {
		return s.checkCalls(t, p, input)
	}
	return s.checkAttempts(t, p, input)
}

// checkFanEnd checks how a fan-out has ended after its items.
func (s *story) checkFanEnd(t *taskPlan, items []itemPlan) error {
	got := s.task(t.name)
	begun, well := 0, 0
	var first time.Time
	failed := map[string]*run.TaskRun{} // those that were the first
	for _, item := range items {
		state := s.run.Task(run.TaskRef{Task: t.name, Key: item.key})
		if state == nil {
			continue
		}
		begun++
		switch at := state.FinishedAt; {
		case state.State == run.Succeeded:
			well++
		case len(failed) > 0 && at.After(first):
		case len(failed) > 0 && at.Equal(first):
			failed[item.key] = state
		default:
			first, failed = at, map[string]*run.TaskRun{item.key: state}
		}
	}
	all := begun == len(items)
	stopped := s.stopped(t) < s.endOf(t.ref())
	switch {
	case all && well == begun, all && t.goesOn && !stopped:
		if got.State != run.Succeeded {
			return fmt.Errorf("it is %s (%v), and of %d items %d went well", got.State, got.Failure, len(items), well)
		}
		return nil
	case stopped && got.State == run.Canceled:
		return nil
	case t.goesOn || len(failed) == 0:
		return fmt.Errorf("it is %s (%v), of %d items %d have begun and %d went well", got.State, got.Failure, len(items), begun, well)
	}
	if why := got.Failure; why != nil && why.Task == t.name {
		if one := failed[why.Key]; one != nil && one.State == got.State && (one.Failure.Code == why.Code || one.Cancel != nil && one.Cancel.Code == why.Code) {
			return nil
		}
	}
	return fmt.Errorf("it is %s (%v), and the items that failed first are %v", got.State, got.Failure, sortedKeys(failed))
}

// gathered is the output of a fan-out that has succeeded.
func (s *story) gathered(t *taskPlan) any {
	items, named, _ := decodedItems(s.blobs.whole(s.task(t.name).Items))
	list, object := []any{}, map[string]any{}
	for _, item := range items {
		var output any
		if state := s.run.Task(run.TaskRef{Task: t.name, Key: item.key}); state != nil && state.State == run.Succeeded {
			output = t.item(item.key).ref().Label()
			if t.call != nil {
				output = s.decoded(state.Output)
			}
		}
		list = append(list, output)
		object[item.key] = output
	}
	if named {
		return object
	}
	return list
}
