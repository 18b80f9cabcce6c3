//go:build linux || darwin

package compile

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// childNiceness leaves the processors to calls while a child compiles.
const childNiceness = 10

// ownGroup protects the child from signals of the terminal: its parent ends it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endedBySize reports whether a child ended because its file became too large.
func endedBySize(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGXFSZ
}

// limitProcess limits this process, the leader of its process group.
func limitProcess(work job) error {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, childNiceness) // optional
	for resource, limit := range map[int]uint64{
		syscall.RLIMIT_CPU: uint64(work.CPU), syscall.RLIMIT_AS: reservedAddresses() + uint64(work.Memory),
		syscall.RLIMIT_FSIZE: uint64(work.Code), syscall.RLIMIT_CORE: 0,
	} {
		var r syscall.Rlimit
		if err := syscall.Getrlimit(resource, &r); err != nil {
			return os.NewSyscallError("getrlimit", err)
		}
		r.Cur = min(r.Cur, limit)
		r.Max = min(r.Max, limit+1) // for processor time: SIGKILL a second after SIGXCPU
		if err := syscall.Setrlimit(resource, &r); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return nil
}

// reservedAddresses is the size in bytes of the address space that the Go runtime has
// reserved at its start, nearly all of it without memory; a usual value if the system
// does not report it.
func reservedAddresses() uint64 {
	const usual = 2 << 30
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return usual
	}
	pages, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseUint(pages, 10, 64)
	if err != nil {
		return usual
	}
	return n * uint64(os.Getpagesize())
}
