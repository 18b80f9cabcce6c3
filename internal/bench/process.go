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

// site is a folder with one flow, and what serves it.
type site struct {
	binary, dir string
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

func newSite(binary, plugin string) (*site, error) {
	dir, err := os.MkdirTemp("", "flowhost-bench-")
	if err != nil {
		return nil, err
	}
	module, err := os.ReadFile(plugin)
	if err != nil {
		return nil, fmt.Errorf("%w: run make build first", err)
	}
	binary, err = filepath.Abs(binary)
	return &site{binary: binary, dir: dir}, errors.Join(err,
		os.Mkdir(filepath.Join(dir, "flows"), 0o700),
		os.WriteFile(filepath.Join(dir, "flows", "bench.hcl"), []byte(benchFlows), 0o600),
		os.WriteFile(filepath.Join(dir, "flows", "greet.wasm"), module, 0o600),
		os.WriteFile(filepath.Join(dir, "flows", "tiny.wasm"), tiny, 0o600),
	)
}

// process is a started program that answers.
type process struct {
	data string
	cmd  *exec.Cmd
	nc   *nats.Conn
	took time.Duration // from its start to its first answer
}

// start runs the program until its micro service answers a ping: flows are
// loaded, triggers armed, the journal is read.
func (s *site) start(ctx context.Context) (*process, error) {
	data := filepath.Join(s.dir, "data")
	os.Remove(filepath.Join(data, "nats-context.json"))
	p := &process{data: data, cmd: exec.CommandContext(ctx, s.binary, "run", filepath.Join(s.dir, "flows"), "--data", data, "--nats-listen", "127.0.0.1:0")}
	p.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(s.dir, "cache"))
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := begin.Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if p.nc == nil {
			p.nc = connect(data)
		}
		if p.nc != nil {
			if _, err := p.nc.Request("$SRV.PING.flowhost", nil, time.Second); err == nil {
				p.took = time.Since(begin)
				return p, nil
			}
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
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
	return p.cmd.Wait()
}

// resident is the process's resident memory in bytes (proc(5), status, VmRSS).
func (p *process) resident() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb * 1024, err
		}
	}
	return 0, errors.New("the status of the process has no line VmRSS")
}
