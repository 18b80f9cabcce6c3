package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

// site is a directory with one flow, and what serves it.
type site struct {
	binary, dir string
	flows       string
	args        []string // further ones of the program
}

const benchFlows = `
flow "go_guest" {
  trigger "message" "ask" {
    subject = "bench.go"
  }
  task "greet" {
    plugin = "./greet.wasm"
    input  = { name = "bench" }
  }
}

flow "tiny_guest" {
  trigger "message" "ask" {
    subject = "bench.tiny"
  }
  task "nothing" {
    plugin = "./tiny.wasm"
  }
}
`

// tiny is the smallest guest: one page of memory, and a function "run" that
// returns 0. What a run costs around it is flowhost's own.
var tiny = []byte("\x00asm\x01\x00\x00\x00" + // magic, version
	"\x01\x05\x01\x60\x00\x01\x7f" + // type () -> i32
	"\x03\x02\x01\x00" + // one function of it
	"\x05\x03\x01\x00\x01" + // memory of one page
	"\x07\x10\x02\x06memory\x02\x00\x03run\x00\x00" + // exports
	"\x0a\x06\x01\x04\x00\x41\x00\x0b") // i32.const 0

// benchFiles are the flows that are asked for results, and their modules.
func benchFiles(plugin []byte) map[string][]byte {
	return map[string][]byte{"bench.hcl": []byte(benchFlows), "greet.wasm": plugin, "tiny.wasm": tiny}
}

// newSite makes a directory with the given files in its directory of flows.
func newSite(binary string, files map[string][]byte) (*site, error) {
	dir, err := os.MkdirTemp("", "flowhost-bench-")
	if err != nil {
		return nil, err
	}
	binary, err = filepath.Abs(binary)
	err = errors.Join(err, os.Mkdir(filepath.Join(dir, "flows"), 0o700))
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "flows", name), content, 0o600))
	}
	return &site{binary: binary, dir: dir, flows: filepath.Join(dir, "flows")}, err
}

// log is the file of what the program prints.
func (s *site) log() string { return filepath.Join(s.dir, "log") }

// process is a started program that answers.
type process struct {
	data  string
	cmd   *exec.Cmd
	ended chan error // what Wait has returned
	nc    *nats.Conn
	began time.Time
	took  time.Duration // from its start to its first answer
	used  time.Duration // of processors until then
}

// start runs the program until its micro service answers a ping: flows are
// loaded, triggers armed, the journal is read.
func (s *site) start(ctx context.Context) (*process, error) {
	data := filepath.Join(s.dir, "data")
	os.Remove(filepath.Join(data, "nats-context.json"))
	p := &process{data: data, cmd: exec.CommandContext(ctx, s.binary, append([]string{"run", s.flows, "--data", data, "--nats-listen", "127.0.0.1:0"}, s.args...)...)}
	p.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(s.dir, "cache"))
	log, err := os.Create(s.log())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.cmd.Wait() }()
	for deadline := p.began.Add(10 * time.Minute); ; time.Sleep(time.Millisecond) {
		if p.nc == nil {
			p.nc = connect(data)
		}
		if p.nc != nil {
			if _, err := p.nc.Request("$SRV.PING.flowhost", nil, time.Second); err == nil {
				p.took = time.Since(p.began)
				p.used, err = p.processor()
				return p, err
			}
		}
		if time.Now().After(deadline) || ctx.Err() != nil || len(p.ended) > 0 {
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("the program does not answer: %s", text)
		}
	}
}

// connect gives nil while the program is not up.
func connect(data string) *nats.Conn {
	text, err := os.ReadFile(filepath.Join(data, "nats-operator-context.json"))
	if err != nil {
		return nil
	}
	var c struct{ URL, User, Password string }
	if json.Unmarshal(text, &c) != nil {
		return nil
	}
	nc, err := nats.Connect(c.URL, nats.UserInfo(c.User, c.Password), nats.NoReconnect())
	if err != nil {
		return nil
	}
	return nc
}

func (p *process) stop() error {
	p.nc.Close()
	p.cmd.Process.Signal(syscall.SIGTERM)
	return <-p.ended
}

// memoryUse is what a process has of the machine's memory, in bytes (proc(5),
// smaps_rollup).
type memoryUse struct {
	resident int64 // all pages that are mapped; those of the program's file are shared with other processes
	own      int64 // of these, what no file holds and the kernel cannot drop: anonymous pages, and files in memory
}

func (p *process) memory() (memoryUse, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.cmd.Process.Pid))
	if err != nil {
		return memoryUse{}, err
	}
	var m memoryUse
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kb, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return memoryUse{}, fmt.Errorf("smaps_rollup: %w", err)
		}
		switch fields[0] {
		case "Rss:":
			m.resident = kb * 1024
		case "Pss_Anon:", "Pss_Shmem:":
			m.own += kb * 1024
		}
	}
	if m.resident == 0 || m.own == 0 {
		return memoryUse{}, errors.New("smaps_rollup says nothing of resident memory")
	}
	return m, nil
}

// processor is the processor time that the process's threads have had so far
// (proc(5), schedstat, in nanoseconds where stat has hundredths of a second).
func (p *process) processor() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			return 0, err
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("schedstat: %w", err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}
