package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
)

// SnapshotVersion is the version of the encoding of snapshots. A change of the encoding
// increments it.
const SnapshotVersion = 1

// snapshotMagic is the first byte of a stored snapshot. The version follows.
const snapshotMagic = 0xf8

// Snapshot encodes the state of a shard: first everything except the runs, then one
// run after the other, each in its state at the snapshot's revision.
type Snapshot struct {
	enc  encoder
	runs int
}

// NewSnapshot encodes everything of a shard except its runs.
func NewSnapshot(s *run.Shard) (*Snapshot, error) {
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
	e.count(s.Keys.Len())
	for k := range s.Keys.All() {
		e.name(k.Flow)
		e.text(k.Name)
		e.time(k.At)
		e.text(string(k.Run))
	}
	e.schedules(s)
	e.count(len(s.Successes))
	for _, flow := range slices.Sorted(maps.Keys(s.Successes)) {
		e.name(flow)
		e.time(s.Successes[flow])
	}
	e.pause(s.Pause)
	return n, e.err
}

// Add encodes one run.
func (n *Snapshot) Add(r *run.Run) error {
	e := &n.enc
	e.bool(true)
	e.run(r)
	n.runs++
	return e.err
}

// Runs is the number of runs so far.
func (n *Snapshot) Runs() int { return n.runs }

// Blobs are the blobs to which the runs so far refer.
func (n *Snapshot) Blobs() []run.Blob { return n.enc.blobs }

// Size is the number of bytes so far.
func (n *Snapshot) Size() int { return len(n.enc.out) }

// Seal returns the stored form after all runs are added. The revision is that of the
// last commit that the state contains.
func (n *Snapshot) Seal(revision uint64) []byte {
	n.enc.bool(false)
	n.enc.uint(revision)
	out := n.enc.out
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, checksum))
}

// DecodeSnapshot decodes a stored snapshot into the state and its revision.
func DecodeSnapshot(stored []byte) (*run.Shard, uint64, error) {
	if len(stored) < 2 || stored[0] != snapshotMagic {
		return nil, 0, fmt.Errorf("the snapshot is %w: it does not begin like a snapshot", run.ErrDamaged)
	}
	if version := stored[1]; version < 1 || version > SnapshotVersion {
		return nil, 0, fmt.Errorf("the snapshot has format version %d, and this flowhost reads versions up to %d: a newer flowhost is needed", version, SnapshotVersion)
	}
	body, err := verify(stored)
	if err != nil {
		return nil, 0, fmt.Errorf("the snapshot is %w", err)
	}
	d := decoder{in: body, pos: 2}
	s := d.shard()
	revision := d.uint()
	if d.more() {
		d.fail(errors.New("bytes follow the end"))
	}
	if d.err != nil {
		return nil, 0, fmt.Errorf("the snapshot is %w: %w", run.ErrDamaged, d.err)
	}
	return s, revision, nil
}

func (d *decoder) shard() *run.Shard {
	s := run.NewShard()
	for range d.count() {
		p := run.Position{Source: d.name(), Seq: d.uint(), At: d.time()}
		s.Watermarks[p.Source] = p
	}
	for range d.count() {
		definition := new(run.Definition)
		d.json(definition)
		s.Definitions[definition.Digest()] = definition
	}
	for range d.count() {
		s.Keys.Add(run.Key{Flow: d.name(), Name: d.text(), At: d.time(), Run: run.ID(d.text())})
	}
	d.schedules(s)
	for range d.count() {
		flow := d.name()
		s.Successes[flow] = d.time()
	}
	s.Pause = d.pause()
	for d.bool() {
		r := d.run()
		s.Runs[r.ID] = r
	}
	return s
}

func (e *encoder) run(r *run.Run) {
	e.text(string(r.ID))
	e.name(r.Flow)
	e.name(r.Definition)
	e.trigger(&r.Trigger)
	e.params(r.Params)
	e.text(r.Concurrency)
	e.text(string(r.RetryOf))
	e.parent(r.Parent)
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

func (d *decoder) run() *run.Run {
	r := &run.Run{
		ID: run.ID(d.text()), Flow: d.name(), Definition: d.name(), Trigger: d.trigger(), Params: d.params(),
		Concurrency: d.text(), RetryOf: run.ID(d.text()), Parent: d.parent(),
		Continuation: d.bytes(), Attempt: d.small(), Awaits: d.small(),
		Version: d.uint(), State: run.State(d.name()), Cancel: d.failure(), Output: d.bytes(), Failure: d.failure(),
		CreatedAt: d.time(), StartedAt: d.time(), FinishedAt: d.time(), PreviousSuccess: d.time(),
	}
	for range d.count() {
		r.AddTask(d.taskRun())
	}
	return r
}

func (e *encoder) taskRun(t *run.TaskRun) {
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
	e.int(int64(t.Queued))
	e.payload(t.Items)
	e.text(string(t.Child))
	e.text(t.Subject)
	e.text(t.Approval)
	e.time(t.Deadline)
	e.name(t.Reason)
}

func (d *decoder) taskRun() *run.TaskRun {
	return &run.TaskRun{
		TaskRef: d.ref(), State: run.State(d.name()), Attempts: d.small(), Lost: d.small(), Reused: d.bool(), Cancel: d.failure(),
		Module: d.name(), Function: d.name(), Input: d.bytes(), Config: d.bytes(),
		Outcome: run.Outcome(d.name()), Output: d.bytes(), Failure: d.failure(),
		Due: d.time(), StartedAt: d.time(), FinishedAt: d.time(), Busy: time.Duration(d.int()), Queued: time.Duration(d.int()),
		Items: d.bytes(), Child: run.ID(d.text()), Subject: d.text(), Approval: d.text(), Deadline: d.time(), Reason: d.name(),
	}
}
