package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// bulkFlows write an artifact, and read it in two ways. The memory of a task is bounded,
// whatever the size of the artifact is.
const bulkFlows = `
flow "bulk" {
  param "mib" {
    type = number
  }

  task "write" {
    plugin   = "./bulk.wasm"
    function = "write"
    input    = param.mib
    timeout  = "30m"
    grant { artifacts = true }
    limits { memory = "16MiB" }
  }
  task "read" {
    plugin   = "./bulk.wasm"
    function = "read"
    input    = task.write.output
    timeout  = "30m"
    grant { artifacts = true }
    limits { memory = "16MiB" }
  }
  task "hash" {
    plugin   = "./bulk.wasm"
    function = "hash"
    input    = task.write.output
    after    = [task.read]
    timeout  = "30m"
    grant { artifacts = true }
    limits { memory = "16MiB" }
  }
  task "compute" {
    plugin   = "./bulk.wasm"
    function = "compute"
    input    = 64
    after    = [task.hash]
    timeout  = "30m"
    limits { memory = "16MiB" }
  }
}
`

// bulkSettings bound the memory of guests and of what the host holds for them.
const bulkSettings = `memory = "64MiB"`

// bulk passes an artifact of so many MiB through guests of a host. It returns the run, and by
// how many bytes the peak of the host's memory has grown meanwhile.
func bulk(t testing.TB, mib int) (*record, int64) {
	t.Helper()
	h := serve(t, site(t, bulkFlows, bulkSettings), "--nats-listen", "127.0.0.1:0")
	begun := peakMemory(t, h.cmd.Process.Pid)
	c := h.client()
	id := c.submit("fh.v1.api.run.bulk", fmt.Sprintf(`{"mib":%d}`, mib))
	for _, name := range []string{"write", "read", "hash", "compute"} {
		c.watched(id, func(r *record) bool {
			state := r.task(t, name).State
			return state != "pending" && state != "running"
		})
	}
	r := c.watched(id, func(r *record) bool { return r.State != "running" })
	var stored struct {
		Digest string `json:"$artifact"`
		Size   int64  `json:"size"`
	}
	if err := json.Unmarshal(r.task(t, "write").Output, &stored); err != nil || r.State != "succeeded" {
		t.Fatalf("%s %+v %v", r.State, r.Error, err)
	}
	if want := int64(mib) << 20; stored.Size != want || string(r.task(t, "read").Output) != strconv.FormatInt(want, 10) {
		t.Errorf("%d bytes were stored and %s read, want %d", stored.Size, r.task(t, "read").Output, want)
	}
	if got := string(r.task(t, "hash").Output); got != strconv.Quote(stored.Digest) {
		t.Errorf("the bytes that were read have the digest %s, not %s", got, stored.Digest)
	}
	grown := peakMemory(t, h.cmd.Process.Pid) - begun
	h.stop()
	return r, grown
}

// Guests pass on an artifact that is larger than their memory, and than all that the host
// may hold for them.
func TestArtifactLargerThanMemory(t *testing.T) {
	t.Parallel()
	bulk(t, 96)
}

// BenchmarkArtifacts passes an artifact of 1 GiB through guests of a host, and reports the
// throughput in MiB a second of each direction, and of a guest that only hashes, and by how
// much the peak of the host's resident memory has grown, its NATS server and modules included.
func BenchmarkArtifacts(b *testing.B) {
	const mib = 1 << 10
	for b.Loop() {
		r, grown := bulk(b, mib)
		for _, name := range []string{"write", "read", "hash", "compute"} {
			task, size := r.task(b, name), mib
			if name == "compute" {
				size = 64
			}
			b.ReportMetric(float64(size)/task.FinishedAt.Sub(task.StartedAt).Seconds(), name+"-MiB/s")
		}
		b.ReportMetric(float64(grown)/(1<<20), "MiB-grown")
	}
	b.ReportMetric(0, "ns/op")
}

// peakMemory is the most resident memory that a process has had, in bytes (proc(5), VmHWM).
// 0 where the system does not count it.
func peakMemory(t testing.TB, pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	return 0
}
