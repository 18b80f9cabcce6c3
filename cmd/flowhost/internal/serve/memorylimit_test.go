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

func TestHeapLimit(t *testing.T) {
	t.Parallel()
	for total, want := range map[int64]int64{0: 0, 512 << 20: 256 << 20, 2 << 30: 1 << 30, 10 << 30: 8 << 30} {
		if got := heapLimit(total); got != want {
			t.Errorf("of %d bytes the heap gets %d, want %d", total, got, want)
		}
	}
}
