package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/buildinfo"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// NewHost creates the sandbox host. It is also the catalog with which flows are
// loaded, and so exists before the logs that the lines of guests go to. Without an outside,
// calls reach nothing.
func NewHost(ctx context.Context, s settings.Settings, outside *Outside, lines func(*run.Call, time.Time, run.LogLine), log *slog.Logger) (*host.Host, error) {
	tuned := hostTuning(&s)
	config := host.Config{
		CacheDir: s.Cache, Limits: tuned.Limits, Timeout: tuned.Timeout, Grace: tuned.Grace, Lines: lines, Log: log,
		Memory: guestMemory(s.Memory, availableMemory(os.DirFS("/"))), CompileCommand: CompileCommand(),
	}
	if outside != nil {
		config.Reach, config.Operations, config.Lines = outside.Open, outside.Operation, outside.maskLines(lines)
	}
	if config.CacheDir == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			config.CacheDir = filepath.Join(cache, "flowhost")
		}
	}
	if s.Data != "" {
		config.Private = []string{s.Data}
		// Before anything is loaded, so that its problems are reported as those of a directory.
		if err := natsd.CheckDataDir(s.Data); err != nil {
			return nil, cli.WithCode(cli.ExitInvalid, err)
		}
		config.Modules = &keptModules{Folder: host.Folder(filepath.Join(s.Data, "modules")), settings: s, log: log}
	}
	return host.New(ctx, config)
}

// keptModules stores modules in the data directory, which the first one claims:
// flows that fail to load leave no directory behind.
type keptModules struct {
	host.Folder
	settings settings.Settings
	log      *slog.Logger
	claiming sync.Mutex
}

// Keep implements host.Source.
func (k *keptModules) Keep(ctx context.Context, digest string, module []byte) error {
	k.claiming.Lock()
	err := claimData(&k.settings, k.log)
	k.claiming.Unlock()
	if err != nil {
		return err
	}
	if err := k.Folder.Keep(ctx, digest, module); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// claimData makes the data directory the host's own.
func claimData(s *settings.Settings, log *slog.Logger) error {
	return natsd.ClaimDataDir(s.Data, buildinfo.This().Version, log)
}

// CloseHost closes a sandbox host within stopTime.
func CloseHost(h *host.Host) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	h.Close(ctx) // fails if a guest still runs, which then ends with the process
}
