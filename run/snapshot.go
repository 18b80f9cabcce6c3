package run

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"
)

// SnapshotVersion is the version of the encoding of snapshots. Version 1, which
// is read as well, has no schedules and no backfills, version 2 no fan-outs, waits
// and sub-flows, and no times of watermarks, version 3 nothing of runs that continue
// others within sub-flows, or are being taken over.
const SnapshotVersion = 4

// Stored snapshots begin with this byte and the version.
const snapshotMagic = 0xf8

// Snapshot is the state of a shard in its stored form while it is being
// written: first everything but the runs, then one run after the other, each in
// the state that it had at the snapshot's revision.
type Snapshot struct {
	enc  encoder
	runs int
}

// NewSnapshot writes everything of a shard but its runs.
func NewSnapshot(s *Shard) (*Snapshot, error) {
	n := new(Snapshot)
	e := &n.enc
	e.out = append(e.out, snapshotMagic, SnapshotVersion)
	e.count(len(s.Watermarks))
	for _, source := range slices.Sorted(maps.Keys(s.Watermarks)) {
		e.name(source)
		e.uint(s.Watermarks[source].Seq)
		e.time(s.Watermarks[source].At)
	}
	e.count(len(s.Definitions))
	for _, digest := range slices.Sorted(maps.Keys(s.Definitions)) {
		e.json(s.Definitions[digest])
	}
	e.count(len(s.Keys.order))
	for _, k := range s.Keys.order {
		e.name(k.flow)
		e.text(k.key)
		e.time(k.at)
		e.text(string(s.Keys.runs[k.keyOf].run))
	}
	e.schedules(s)
	e.count(len(s.Successes))
	for _, flow := range slices.Sorted(maps.Keys(s.Successes)) {
		e.name(flow)
		e.time(s.Successes[flow])
	}
	return n, e.err
}

// Add writes one run.
func (n *Snapshot) Add(r *Run) error {
	e := &n.enc
	e.bool(true)
	e.run(r)
	n.runs++
	return e.err
}

// Runs is the number of runs so far.
func (n *Snapshot) Runs() int { return n.runs }

// Blobs are the names of what the runs so far refer to.
func (n *Snapshot) Blobs() []Blob { return n.enc.blobs }

// Size is the number of bytes so far.
func (n *Snapshot) Size() int { return len(n.enc.out) }

// Seal gives the stored form once all runs are written. The revision is the last
// one whose commit the state holds.
func (n *Snapshot) Seal(revision uint64) []byte {
	n.enc.bool(false)
	n.enc.uint(revision)
	out := n.enc.out
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, checksum))
}

// DecodeSnapshot reads a stored snapshot and gives the state and its revision.
func DecodeSnapshot(stored []byte) (*Shard, uint64, error) {
	if len(stored) < 2 || stored[0] != snapshotMagic {
		return nil, 0, fmt.Errorf("the snapshot is %w: it does not begin as one", ErrDamaged)
	}
	version := stored[1]
	if version < 1 || version > SnapshotVersion {
		return nil, 0, fmt.Errorf("the snapshot has format version %d and this flowhost reads versions up to %d: a newer flowhost is needed", version, SnapshotVersion)
	}
	body, err := verify(stored)
	if err != nil {
		return nil, 0, fmt.Errorf("the snapshot is %w", err)
	}
	d := decoder{in: body, pos: 2, version: version}
	s := d.shard()
	revision := d.uint()
	if d.more() {
		d.fail(errors.New("something follows the end"))
	}
	if d.err != nil {
		return nil, 0, fmt.Errorf("the snapshot is %w: %w", ErrDamaged, d.err)
	}
	return s, revision, nil
}

func (d *decoder) shard() *Shard {
	s := NewShard()
	for range d.count() {
		p := Position{Source: d.name(), Seq: d.uint()}
		if d.version > 2 {
			p.At = d.time()
		}
		s.Watermarks[p.Source] = p
	}
	for range d.count() {
		definition := new(Definition)
		d.json(definition)
		s.Definitions[definition.Digest()] = definition
	}
	for range d.count() {
		flow, name, at := d.name(), d.text(), d.time()
		s.Keys.add(flow, name, ID(d.text()), at)
	}
	if d.version > 1 {
		d.schedules(s)
	}
	if d.version > 2 {
		for range d.count() {
			flow := d.name()
			s.Successes[flow] = d.time()
		}
	}
	for d.bool() {
		r := d.run()
		s.Runs[r.ID] = r
	}
	return s
}

func (e *encoder) run(r *Run) {
	e.text(string(r.ID))
	e.name(r.Flow)
	e.name(r.Definition)
	e.trigger(&r.Trigger)
	e.params(r.Params)
	e.text(r.Concurrency)
	e.text(string(r.RetryOf))
	e.bool(r.Parent != nil)
	if r.Parent != nil {
		e.parent(r.Parent)
	}
	e.payload(r.Continuation)
	e.int(int64(r.Attempt))
	e.int(int64(r.Awaits))
	e.uint(r.Version)
	e.name(string(r.State))
	e.failure(r.Cancel)
	e.payload(r.Output)
	e.failure(r.Failure)
	e.time(r.CreatedAt)
	e.time(r.StartedAt)
	e.time(r.FinishedAt)
	e.time(r.PreviousSuccess)
	e.count(len(r.Tasks))
	for _, t := range r.Tasks {
		e.taskRun(t)
	}
}

func (d *decoder) run() *Run {
	r := &Run{
		ID: ID(d.text()), Flow: d.name(), Definition: d.name(), Trigger: d.trigger(), Params: d.params(),
		Concurrency: d.text(), RetryOf: ID(d.text()),
	}
	if d.version > 2 && d.bool() {
		r.Parent = d.parent()
	}
	r.Attempt = 1
	if d.version > 3 {
		r.Continuation, r.Attempt, r.Awaits = d.bytes(), d.small(), d.small()
	}
	r.Version, r.State, r.Cancel = d.uint(), State(d.name()), d.failure()
	r.Output, r.Failure = json.RawMessage(d.bytes()), d.failure()
	r.CreatedAt, r.StartedAt, r.FinishedAt = d.time(), d.time(), d.time()
	if d.version > 2 {
		r.PreviousSuccess = d.time()
	}
	for range d.count() {
		r.add(d.taskRun())
	}
	return r
}

func (e *encoder) taskRun(t *TaskRun) {
	e.ref(t.TaskRef)
	e.name(string(t.State))
	e.int(int64(t.Attempts))
	e.int(int64(t.Lost))
	e.bool(t.Reused)
	e.failure(t.Cancel)
	e.name(t.Module)
	e.name(t.Function)
	e.payload(t.Input)
	e.payload(t.Config)
	e.name(string(t.Outcome))
	e.payload(t.Output)
	e.failure(t.Failure)
	e.time(t.Due)
	e.time(t.StartedAt)
	e.time(t.FinishedAt)
	e.int(int64(t.Busy))
	e.payload(t.Items)
	e.text(string(t.Child))
	e.text(t.Subject)
	e.text(t.Approval)
	e.time(t.Deadline)
}

func (d *decoder) taskRun() *TaskRun {
	t := &TaskRun{
		TaskRef: d.ref(), State: State(d.name()), Attempts: d.small(), Lost: d.small(), Reused: d.bool(), Cancel: d.failure(),
		Module: d.name(), Function: d.name(), Input: d.bytes(), Config: d.bytes(),
		Outcome: Outcome(d.name()), Output: d.bytes(), Failure: d.failure(),
		Due: d.time(), StartedAt: d.time(), FinishedAt: d.time(), Busy: time.Duration(d.int()),
	}
	if d.version > 2 {
		t.Items, t.Child = d.bytes(), ID(d.text())
		t.Subject, t.Approval, t.Deadline = d.text(), d.text(), d.time()
	}
	return t
}
