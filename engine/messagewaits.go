package engine

import (
	"sync"

	"github.com/flowhost/flowhost/run"
)

// messageWaits collects the waits for messages that begin and end, for one reader. The
// loop never waits for the reader, and without one it holds no more than the open
// waits.
type messageWaits struct {
	mu      sync.Mutex
	begun   map[waitKey]run.OpenWait // not returned yet
	ended   map[waitKey]run.OpenWait // of those that were returned
	changed chan struct{}            // one place
}

type waitKey struct {
	run  run.ID
	wait string
}

func keyOf(w run.OpenWait) waitKey { return waitKey{w.Run, w.Wait} }

func (m *messageWaits) open(w run.OpenWait) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun[keyOf(w)] = w
	m.notify()
}

func (m *messageWaits) end(w run.OpenWait) {
	if w.Subject == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, untold := m.begun[keyOf(w)]; untold {
		delete(m.begun, keyOf(w))
		return
	}
	m.ended[keyOf(w)] = w
	m.notify()
}

func (m *messageWaits) notify() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *messageWaits) take() (begun, ended []run.OpenWait) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.begun {
		begun = append(begun, w)
	}
	for _, w := range m.ended {
		ended = append(ended, w)
	}
	clear(m.begun)
	clear(m.ended)
	return begun, ended
}

// MessageWaits returns the waits for messages that have begun, and those that have
// ended, since the last call. It has one caller: it returns each wait once.
func (e *Engine) MessageWaits() (begun, ended []run.OpenWait) { return e.exec.messages.take() }

// MessageWaitsChanged receives a value whenever MessageWaits would return more.
func (e *Engine) MessageWaitsChanged() <-chan struct{} { return e.exec.messages.changed }
