package serve

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// LimitMemory sets the soft limit of Go's heap to what the budget of guests leaves of the
// memory of the machine, or of the process's control group, unless GOMEMLIMIT is set.
// Without a limit, the kernel kills the process when memory runs out.
func LimitMemory(stated int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	total := availableMemory(os.DirFS("/"))
	if limit := heapLimit(total, guestMemory(stated, total)); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
}

// Bounds of the budget of guests that the operator does not state.
const (
	leastGuestMemory   = 256 << 20 // one call with the default limit
	mostGuestMemory    = 16 << 30
	unknownGuestMemory = 1 << 30 // of a machine whose memory is unknown
)

// guestMemory is the budget of guests: what the operator states, or else half of the
// memory, within bounds.
func guestMemory(stated, total int64) int64 {
	switch {
	case stated > 0:
		return stated
	case total <= 0:
		return unknownGuestMemory
	}
	return min(max(total/2, leastGuestMemory), mostGuestMemory)
}

// heapLimit is Go's share of the memory, 0 if the memory is unknown. Go does not count
// the memory of guests: the heap gets what their budget leaves, less a tenth of the total
// for code, stacks and kernel buffers, and at least a quarter.
func heapLimit(total, guests int64) int64 {
	return max(total-total/10-guests, total/4)
}

// availableMemory is the memory that this process may use: the least of the
// machine's and of the limits of its control groups, version 2 and 1. It is 0 when
// none is known, as on systems without /proc.
func availableMemory(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	for _, n := range append(groupLimits(root), machineMemory(root)) {
		if n > 0 {
			least = min(least, n)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "MemTotal:" && words[2] == "kB" {
			n, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil || n > math.MaxInt64>>10 {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// groupLimits are the limits of the groups of this process and of those around
// them. In a container the group may be given as the machine sees it, while the
// container's own is mounted at the top: missing groups are skipped, and the top
// is always read.
func groupLimits(root fs.FS) []int64 {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var limits []int64
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			limits = append(limits, limitsUpward(root, "sys/fs/cgroup", parts[2], "memory.max", "memory.high")...)
		case strings.Contains(","+parts[1]+",", ",memory,"):
			limits = append(limits, limitsUpward(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes")...)
		}
	}
	return limits
}

// limitsUpward reads files of a group and of all groups that hold it.
func limitsUpward(root fs.FS, top, group string, names ...string) []int64 {
	var limits []int64
	for at := path.Join("/", group); ; at = path.Dir(at) {
		for _, name := range names {
			if n := readLimit(root, path.Join(top, at, name)); n > 0 {
				limits = append(limits, n)
			}
		}
		if at == "/" {
			return limits
		}
	}
}

// readLimit is 0 where there is no limit: "max", or a number in version 1 that is
// larger than any memory.
func readLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n < 0 || n >= 1<<60 {
		return 0
	}
	return n
}
