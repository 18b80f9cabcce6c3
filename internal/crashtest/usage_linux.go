package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Usage is what a process uses at a moment.
type Usage struct {
	At         time.Duration // since the first one
	Resident   int64         // bytes of memory
	Files      int64         // open descriptors
	Threads    int64
	Goroutines int64 // 0 when the program does not report them
	Journal    int64 // bytes on disk of the journal, the snapshots and the blobs
	Disk       int64 // bytes on disk of everything
}

// Use looks at a host's process. nc is the operator's connection.
func Use(ctx context.Context, h *Host, p *Process, nc *nats.Conn) (u Usage, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) { // proc(5)
		fmt.Sscanf(line, "VmRSS: %d kB", &u.Resident)
		fmt.Sscanf(line, "Threads: %d", &u.Threads)
	}
	u.Resident *= 1024
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Pid()))
	if err != nil {
		return u, err
	}
	u.Files = int64(len(files))
	if u.Goroutines, err = goroutines(ctx, nc); err != nil {
		return u, err
	}
	if u.Disk, err = size(h.Data); err != nil {
		return u, err
	}
	for _, stream := range []string{"FH_JOURNAL", "OBJ_FH_SNAPSHOTS", "OBJ_FH_BLOBS"} {
		for _, pattern := range h.directories(stream) {
			folders, err := filepath.Glob(pattern)
			if err != nil {
				return u, err
			}
			for _, folder := range folders {
				n, err := size(folder)
				if err != nil {
					return u, err
				}
				u.Journal += n
			}
		}
	}
	return u, nil
}

// goroutines asks the micro service, which returns what the host uses as data of its
// endpoint run.
func goroutines(ctx context.Context, nc *nats.Conn) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, "$SRV.STATS.flowhost", nil)
	if err != nil {
		return 0, err
	}
	var stats struct {
		Endpoints []struct {
			Data struct {
				Goroutines int64 `json:"goroutines"`
			} `json:"data"`
		} `json:"endpoints"`
	}
	err = json.Unmarshal(reply.Data, &stats)
	for _, e := range stats.Endpoints {
		if e.Data.Goroutines > 0 {
			return e.Data.Goroutines, err
		}
	}
	return 0, err
}

// size is what the files of a directory hold, those aside that go meanwhile.
func size(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	return bytes, err
}

// Bound is how much a figure may grow from the first third of a test to the last.
type Bound struct {
	Name   string
	Of     func(Usage) int64
	Factor float64
	Plus   int64
}

// Grown returns for which figures the median of the last third is over the bound that
// the median of the first third gives.
func Grown(samples []Usage, bounds []Bound) []string {
	third := len(samples) / 3
	var grown []string
	for _, b := range bounds {
		first, last := median(samples[:third], b.Of), median(samples[len(samples)-third:], b.Of)
		if most := int64(float64(first)*b.Factor) + b.Plus; last > most {
			grown = append(grown, fmt.Sprintf("%s: the median was %d in the first third and is %d in the last, over the bound of %d", b.Name, first, last, most))
		}
	}
	return grown
}

func median(samples []Usage, of func(Usage) int64) int64 {
	var all []int64
	for _, u := range samples {
		all = append(all, of(u))
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
