package natsd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

var (
	damageCases = flag.Int("damage.cases", 60, "how many random damages TestDamageIsNeverSilent does")
	damageSeed  = flag.Uint64("damage.seed", 0, "seed of the first of them; default: a random one")
)

// keptStreams are those whose losses must be reported, and where their messages are.
var keptStreams = map[string]func(n int) string{
	bus.StreamJournal:    func(int) string { return "fh.v1.journal.0" },
	bus.StreamTriggers:   func(int) string { return "fh.v1.trigger.orders" },
	bus.StreamDeadLetter: func(int) string { return "fh.v1.deadletter.orders" },
	bus.StreamHistory:    func(n int) string { return "fh.v1.history.orders." + []string{"succeeded", "failed"}[n%2] },
	bus.StreamLogs:       func(n int) string { return "fh.v1.log.orders." + strconv.Itoa(n%10) },
	"OBJ_FH_SNAPSHOTS":   func(n int) string { return "$O.FH_SNAPSHOTS.C." + strconv.Itoa(n) },
	"OBJ_FH_BLOBS":       func(n int) string { return "$O.FH_BLOBS.C." + strconv.Itoa(n) },
}

// foundDamages are the seeds of damages that were not survived once: the sequence of a last
// record made the server fill a gap of a billion messages.
var foundDamages = []uint64{7630333112869090128}

const keptMessages = 120 // of each stream

// keptMessage is the body of a message, of some size, as JSON.
func keptMessage(n int) []byte {
	return fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, n, strings.Repeat(string(rune('a'+n%26)), 37*(n*n%40)))
}

// keptStore is a data directory with all streams, after the server stopped, or as a crash
// leaves it.
func keptStore(t testing.TB, killed bool) string {
	t.Helper()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir})
	js := bustest.JetStream(t, smallStreams(t, s))
	for _, subject := range keptStreams {
		for n := range keptMessages {
			msg := &nats.Msg{Subject: subject(n), Data: keptMessage(n)}
			if n%3 > 0 {
				msg.Header = nats.Header{jetstream.MsgIDHeader: {strconv.Itoa(n)}}
			}
			if _, err := js.PublishMsg(t.Context(), msg); err != nil {
				t.Fatal(err)
			}
		}
	}
	if killed {
		bustest.Eventually(t, "the server has written its files", func() bool { return written(t, js, dir) })
		image := t.TempDir()
		if err := os.CopyFS(image, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		dir = image
	}
	bustest.StopServer(t, s)
	return dir
}

// written reports whether the files of all streams hold what the server has
// acknowledged: some streams are written a little later.
func written(t testing.TB, js jetstream.JetStream, dir string) bool {
	t.Helper()
	for name := range keptStreams {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", name, "msgs", "*.blk"))
		if err != nil {
			t.Fatal(err)
		}
		var size int64
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				size += info.Size()
			}
		}
		if size < int64(stream.CachedInfo().State.Bytes) {
			return false
		}
	}
	return true
}

// smallStreams provisions streams of small files, and gives the connection to them.
func smallStreams(t testing.TB, s *natsd.Server) *nats.Conn {
	t.Helper()
	const size = 200 << 10
	cfg := bus.StreamConfig{
		JournalBytes: size, SnapshotBytes: size, BlobBytes: size, TriggerBytes: size, EventBytes: size,
		DeadLetterBytes: size, HistoryBytes: size, LogBytes: size,
	}
	nc, err := s.ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(bus.Provision(t.Context(), nc, cfg), bus.ProvisionJournal(t.Context(), nc, cfg)); err != nil {
		t.Fatal(err)
	}
	return nc
}

// harm is a random damage of one file.
type harm struct {
	stream, file string
	what         string
}

// inflict damages a file of a stream in one way. After a crash nothing remembers the
// stream's end but its last file: to lose that whole is left out.
func inflict(r *rand.Rand, dir string, killed bool) (harm, error) {
	names := make([]string, 0, len(keptStreams))
	for name := range keptStreams {
		names = append(names, name)
	}
	slices.Sort(names)
	names = append(names, bus.StreamTriggers, bus.StreamTriggers) // more often
	h := harm{stream: names[r.IntN(len(names))]}
	folders, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", h.stream))
	if err != nil || len(folders) != 1 {
		return h, fmt.Errorf("folders of %s: %v, %v", h.stream, folders, err)
	}
	var files []string
	err = filepath.WalkDir(folders[0], func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
			if strings.HasSuffix(path, ".blk") {
				files = append(files, path, path)
			}
		}
		return err
	})
	if err != nil {
		return h, err
	}
	h.file = files[r.IntN(len(files))]
	text, err := os.ReadFile(h.file)
	if err != nil {
		return h, err
	}
	blocks, err := filepath.Glob(filepath.Join(folders[0], "msgs", "*.blk"))
	if err != nil {
		return h, err
	}
	end := killed && strings.HasSuffix(h.file, ".blk") && h.file == slices.MaxFunc(blocks, func(a, b string) int { return blockNumber(a) - blockNumber(b) })
	switch kind := r.IntN(10); {
	case len(text) == 0 || kind == 0 && !end:
		h.what = "removed"
		return h, os.Remove(h.file)
	case kind <= 2:
		n := r.IntN(len(text))
		if end {
			n = max(n, 1)
		}
		h.what = fmt.Sprintf("cut from %d to %d bytes", len(text), n)
		text = text[:n]
	case kind <= 4:
		from := r.IntN(len(text))
		to := min(from+1+r.IntN(4096), len(text))
		h.what = fmt.Sprintf("zeros from %d to %d of %d", from, to, len(text))
		clear(text[from:to])
	case kind == 5:
		from := r.IntN(len(text))
		to := min(from+1+r.IntN(4096), len(text))
		h.what = fmt.Sprintf("noise from %d to %d of %d", from, to, len(text))
		for i := from; i < to; i++ {
			text[i] = byte(r.Uint32())
		}
	default:
		n := 1 + r.IntN(3)
		h.what = fmt.Sprintf("%d bits of %d bytes:", n, len(text))
		for range n {
			at, bit := r.IntN(len(text)), r.IntN(8)
			h.what += fmt.Sprintf(" %d/%d", at, bit)
			text[at] ^= 1 << bit
		}
	}
	return h, os.WriteFile(h.file, text, 0o600)
}

func blockNumber(file string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".blk"))
	return n
}

var (
	reportedRange = regexp.MustCompile(`sequences="?([0-9 ,-]+)(?: and \d+ ranges more, up to (\d+))?`)
	reportedAfter = regexp.MustCompile(`after_sequence=(\d+)`)
)

// reports tells whether the log names a sequence of a stream.
func reports(log, stream string, seq uint64) bool {
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "stream="+stream+" ") {
			continue
		}
		if m := reportedAfter.FindStringSubmatch(line); m != nil {
			if after, _ := strconv.ParseUint(m[1], 10, 64); seq > after {
				return true
			}
		}
		m := reportedRange.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for part := range strings.SplitSeq(m[1], ", ") {
			from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
			first, _ := strconv.ParseUint(from, 10, 64)
			last := first
			if isRange {
				last, _ = strconv.ParseUint(to, 10, 64)
			}
			if seq >= first && seq <= last {
				return true
			}
		}
		if most, _ := strconv.ParseUint(m[2], 10, 64); seq <= most {
			return true
		}
	}
	return false
}

// TestDamageIsNeverSilent damages a random file of a random stream: the server starts,
// and each message is there as it was stored, or the log has its sequence. Of triggers,
// each that is there makes one run. Long: make test-damage.
func TestDamageIsNeverSilent(t *testing.T) {
	t.Parallel()
	stores := map[bool]string{false: keptStore(t, false), true: keptStore(t, true)}
	seed := *damageSeed
	if seed == 0 {
		seed = rand.Uint64() >> 1
	}
	var lost atomic.Int64
	t.Run("cases", func(t *testing.T) {
		seeds := slices.Clone(foundDamages)
		for i := range *damageCases {
			seeds = append(seeds, seed+uint64(i))
		}
		for _, seed := range seeds {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				lost.Add(int64(damageOnce(t, stores, seed)))
			})
		}
	})
	t.Logf("%d cases from seed %d on; %d messages were lost, and all of them reported", *damageCases, seed, lost.Load())
}

func damageOnce(t *testing.T, stores map[bool]string, seed uint64) (lost int) {
	r := rand.New(rand.NewPCG(seed, 1))
	killed := r.IntN(2) == 0
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(stores[killed])); err != nil {
		t.Fatal(err)
	}
	harm, err := inflict(r, dir, killed)
	if err != nil {
		t.Fatal(err)
	}
	var log bustest.LogLines
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Log: log.Logger()})
	nc := smallStreams(t, s)
	var runs *bustest.Starter
	if harm.stream == bus.StreamTriggers {
		runs = &bustest.Starter{}
		bustest.RunIntake(t, nc, runs, nil, intake.Config{Log: log.Logger()})
	}
	for name, subject := range keptStreams {
		there := readable(t, nc, name, subject)
		for n := range keptMessages {
			seq := uint64(n + 1)
			if there[n] != gone || reports(log.All(), name, seq) {
				continue
			}
			if name == bus.StreamJournal && replayFails(t, nc) {
				continue
			}
			if name == bus.StreamTriggers {
				bustest.Eventually(t, "the loss is reported", func() bool { return reports(log.All(), name, seq) })
				continue
			}
			t.Errorf("killed %t, %+v: message %d of %s is lost in silence:\n%s", killed, harm, seq, name, log.All())
			break
		}
		lost += len(there) - howMany(there)
		if name == harm.stream && runs != nil {
			checkRuns(t, runs, there)
		}
	}
	if t.Failed() {
		t.Logf("killed %t, %+v:\n%s", killed, harm, log.All())
	}
	return lost
}

// state is what became of a stored message.
type state int

const (
	gone state = iota
	whole
	deadLetter // no JSON any more: the server's checksums leave the lengths out
)

func howMany(there []state) (n int) {
	for _, is := range there {
		if is != gone {
			n++
		}
	}
	return n
}

// readable tells which messages of a stream are as they were stored.
func readable(t *testing.T, nc *nats.Conn, name string, subject func(int) string) []state {
	t.Helper()
	stream, err := bustest.JetStream(t, nc).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	there := make([]state, keptMessages)
	for n := range there {
		m, err := stream.GetMsg(t.Context(), uint64(n+1))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
		case err != nil:
			t.Fatalf("message %d of %s: %v", n+1, name, err)
		case bytes.Equal(m.Data, keptMessage(n)) && m.Subject == subject(n):
			there[n] = whole
		case name == bus.StreamTriggers && !json.Valid(m.Data):
			there[n] = deadLetter
		default:
			t.Errorf("message %d of %s is another one: %s %s", n+1, name, m.Subject, m.Data)
		}
	}
	return there
}

// replayFails tells whether the journal is refused.
func replayFails(t *testing.T, nc *nats.Conn) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
	defer cancel()
	err := bustest.OpenJournal(t, nc, journal.Config{}).Replay(ctx, 0, func(uint64, []byte) error { return nil })
	return errors.As(err, new(*journal.DamageError))
}

// checkRuns waits for a run of each message, and looks for a second one.
func checkRuns(t *testing.T, s *bustest.Starter, there []state) {
	t.Helper()
	seen := map[uint64]int{}
	bustest.Eventually(t, "each message makes a run", func() bool {
		clear(seen)
		for _, r := range s.Accepted() {
			seen[r.Position.Seq]++
		}
		missing := slices.IndexFunc(there, func(is state) bool { return is == whole })
		for missing >= 0 && missing < len(there) && (there[missing] != whole || seen[uint64(missing+1)] > 0) {
			missing++
		}
		return missing < 0 || missing == len(there)
	})
	for seq, n := range seen {
		if n != 1 {
			t.Errorf("message %d makes %d runs", seq, n)
		}
	}
}
