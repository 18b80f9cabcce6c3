package natsd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// errStopped is what a restart of a server that was shut down fails with.
var errStopped = errors.New("the embedded NATS server is stopped")

// Restart stops the NATS server and starts another one in its place, at the same
// address. It is the only way out of an error in writing: the server takes no
// message for a stream after one, whatever becomes of the disk. Connections that
// were given out are made again, what waits for an acknowledgement asks again, and
// clients at the listener see a short break. After an error there is no server
// until Restart succeeds. ctx bounds the start only.
func (s *Server) Restart(ctx context.Context) error {
	s.work.Lock()
	defer s.work.Unlock()
	if s.isClosed() {
		return errStopped
	}
	old := s.current()
	old.Shutdown()
	old.WaitForShutdown()
	cfg := s.cfg
	if s.address != "" {
		cfg.Listen = s.address
	}
	err := rewriteTails(s.Dir())
	if err == nil {
		err = s.launch(ctx, cfg)
	}
	if err != nil {
		return fmt.Errorf("embedded NATS server: restart: %w", err)
	}
	return nil
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// rewriteTails writes the newest messages of each stream once more. After an fsync
// that failed the kernel may take for written what is in memory only, and the next
// fsync succeeds: a server that finds the messages there would acknowledge what a
// power loss takes away.
//
// Two files of a stream hold whatever was not synced yet: the one that is being
// written and the one before.
func rewriteTails(dir string) error {
	folders, err := filepath.Glob(filepath.Join(dir, streamsDir, "*", "streams", "*", "msgs"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		files, err := messageFiles(folder)
		if err != nil {
			return err
		}
		for _, file := range files[max(len(files)-2, 0):] {
			text, err := os.ReadFile(file)
			if err == nil {
				err = replaceFile(file, text, 0o640)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// messageFiles are the files of a stream's messages, oldest first: 1.blk, 2.blk.
func messageFiles(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.blk"))
	number := func(file string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".blk"))
		return n
	}
	slices.SortFunc(files, func(a, b string) int { return number(a) - number(b) })
	return files, err
}
