package serve

import (
	"strings"
	"testing"
	"testing/fstest"
)

// rootOf is a file system with the given files.
func rootOf(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestAvailableMemory(t *testing.T) {
	t.Parallel()
	const machine = "MemFree:  1 kB\nMemTotal:       16777216 kB\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no /proc":     {nil, 0},
		"machine":      {map[string]string{"proc/meminfo": machine}, 16 << 30},
		"not a number": {map[string]string{"proc/meminfo": "MemTotal: many kB\n"}, 0},
		"too large":    {map[string]string{"proc/meminfo": "MemTotal: 9223372036854775807 kB\n"}, 0},
		"version 2": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/system.slice/flowhost.service\n",
			"sys/fs/cgroup/system.slice/flowhost.service/memory.max": "1073741824\n",
			"sys/fs/cgroup/system.slice/memory.max":                  "max\n",
		}, 1 << 30},
		"version 2, the group around it": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "536870912\n",
		}, 512 << 20},
		"version 2, throttled": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.high": "268435456\n",
		}, 256 << 20},
		"version 2 in a container": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n",
		}, 512 << 20},
		"version 2, a path out of the container": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/../../kubepods/pod1\n", "sys/fs/cgroup/memory.max": "536870912\n",
		}, 512 << 20},
		"version 1": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "12:cpu,cpuacct:/x\n9:memory:/docker/abc\n0::/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
		}, 2 << 30},
		"version 1 without a limit": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "9:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 16 << 30},
		"nonsense": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "\n:\n0:\n0::\n",
			"sys/fs/cgroup/memory.max": "-5\n", "sys/fs/cgroup/memory.high": strings.Repeat("9", 40),
		}, 16 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := availableMemory(rootOf(test.files)); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestGuestsAndHeapShareTheMemory(t *testing.T) {
	t.Parallel()
	const m, g = 1 << 20, 1 << 30
	for _, c := range []struct{ stated, total, guests, heap int64 }{
		{0, 0, g, 0}, // unknown
		{2 * g, 0, 2 * g, 0},
		{0, 200 * m, 256 * m, 50 * m},
		{0, 1000 * m, 500 * m, 400 * m},
		{0, 10 * g, 5 * g, 4 * g},
		{0, 100 * g, 16 * g, 74 * g},
		{8 * g, 10 * g, 8 * g, 10 * g / 4},
		{g, 10 * g, g, 8 * g},
	} {
		guests := guestMemory(c.stated, c.total)
		if heap := heapLimit(c.total, guests); guests != c.guests || heap != c.heap {
			t.Errorf("of %d bytes, %d stated: guests get %d and the heap %d, want %d and %d", c.total, c.stated, guests, heap, c.guests, c.heap)
		}
	}
}
