package natsd

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Lines about connections, such as those with a wrong password, are at most so many in
// a time: anybody can cause them.
const (
	clientLines     = 5
	clientLinesTime = 10 * time.Second
)

// plaintextWarning is about the users' passwords. The server keeps them as they are:
// they are random, with 130 bits, so that it compares them in constant time and needs
// no hash that is slow to compute for each attempt.
const plaintextWarning = "Plaintext passwords detected"

// Lines about an index that is older than the files of its stream. The server writes it
// every two minutes and at the end, so that it is after each kill, and reads the files
// instead. Whether these have lost something, [mendStreams] has found before.
const (
	outdatedIndex = "Stream state outdated, "
	priorIndex    = "Recovering stream state from index errored: prior state file"
)

// serverLog passes the NATS server's log on. The server announces what makes it
// unable to start by a fatal line only, so those are kept.
type serverLog struct {
	log *slog.Logger

	mu      sync.Mutex
	fatal   error
	since   time.Time // when the time for lines about connections began
	lines   int       // of that time
	skipped int       // since the last one that was logged

	outdated int // streams whose index was outdated
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }

func (l *serverLog) Debugf(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }

func (l *serverLog) Tracef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }

func (l *serverLog) Warnf(format string, v ...any) { l.pass(slog.LevelWarn, fmt.Sprintf(format, v...)) }

func (l *serverLog) Errorf(format string, v ...any) {
	l.pass(slog.LevelError, fmt.Sprintf(format, v...))
}

// pass logs a line, unless it is one too many about a connection.
func (l *serverLog) pass(level slog.Level, line string) {
	switch {
	case strings.HasPrefix(line, plaintextWarning):
		return
	case strings.Contains(line, outdatedIndex):
		l.mu.Lock()
		l.outdated++
		l.mu.Unlock()
		fallthrough
	case strings.Contains(line, priorIndex):
		l.log.Debug(line)
		return
	}
	if !strings.Contains(line, " - cid:") {
		l.write(level, line)
		return
	}
	if allowed, skipped := l.allow(time.Now()); allowed {
		l.write(level, line, "left_out", skipped)
	}
}

// write logs without a context: the server gives none.
func (l *serverLog) write(level slog.Level, line string, args ...any) {
	if level == slog.LevelError {
		l.log.Error(line, args...)
	} else {
		l.log.Warn(line, args...)
	}
}

func (l *serverLog) allow(now time.Time) (allowed bool, skipped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= clientLinesTime {
		l.since, l.lines = now, 0
	}
	if l.lines == clientLines {
		l.skipped++
		return false, 0
	}
	l.lines++
	skipped, l.skipped = l.skipped, 0
	return true, skipped
}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = errors.Join(l.fatal, fmt.Errorf(format, v...))
}

// rebuilt is the number of streams that the server has read from their files.
func (l *serverLog) rebuilt() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outdated
}

func (l *serverLog) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}
