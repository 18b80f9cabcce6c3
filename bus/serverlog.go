package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// serverLog passes the NATS server's log on. The server announces what makes it
// unable to start by a fatal line only, so those are kept.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal error
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *serverLog) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }

func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = errors.Join(l.fatal, fmt.Errorf(format, v...))
}

func (l *serverLog) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}
