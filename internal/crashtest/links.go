package crashtest

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Links are the routes between the nodes of a cluster: one proxy for each pair
// and direction, which can be cut. The methods are safe for concurrent use.
type Links struct {
	mu       sync.Mutex
	links    map[[2]int]*link
	stranded map[int]bool // nodes that reach no other one
	silent   bool         // connections are not closed by a cut, they carry nothing
	healed   chan struct{}
	stopped  chan struct{}
	running  sync.WaitGroup
}

// link is the way from one node to the address of another one.
type link struct {
	from, to int
	address  string // of the other node
	listener net.Listener
}

// newLinks makes the links between the nodes with the given addresses of routes.
func newLinks(addresses []string) (*Links, error) {
	l := &Links{links: map[[2]int]*link{}, stranded: map[int]bool{}, healed: make(chan struct{}), stopped: make(chan struct{})}
	for from := range addresses {
		for to, address := range addresses {
			if from == to {
				continue
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				l.close()
				return nil, err
			}
			k := &link{from, to, address, listener}
			l.links[[2]int{from, to}] = k
			l.running.Go(func() { l.accept(k) })
		}
	}
	return l, nil
}

// routes are the addresses at which a node finds the others.
func (l *Links) routes(from int) []string {
	var all []string
	for pair, k := range l.links {
		if pair[0] == from {
			all = append(all, k.listener.Addr().String())
		}
	}
	return all
}

// Cut separates nodes from all others, by their indexes in the cluster. A silent cut
// leaves connections open, as a network does that drops packets; any other one
// closes them.
func (l *Links) Cut(silent bool, nodes ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change()
	l.silent = silent
	for _, n := range nodes {
		l.stranded[n] = true
	}
}

// Heal ends all cuts. Connections that were open during a cut are closed.
func (l *Links) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.stranded)
	l.change()
}

// change wakes all connections. The caller holds mu.
func (l *Links) change() {
	close(l.healed)
	l.healed = make(chan struct{})
}

// state reports whether a link is cut, and returns a channel that is closed at the
// next change.
func (l *Links) state(k *link) (cut, silent bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stranded[k.from] || l.stranded[k.to], l.silent, l.healed
}

func (l *Links) accept(k *link) {
	for {
		near, err := k.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.carry(k, near) })
	}
}

// carry joins a connection with one to the other node, until either ends or a cut
// does it.
func (l *Links) carry(k *link, near net.Conn) {
	defer near.Close()
	cut, silent, changed := l.state(k)
	if cut {
		if silent {
			l.wait(changed)
		}
		return
	}
	far, err := net.Dial("tcp", k.address)
	if err != nil {
		return
	}
	defer far.Close()
	valve := &valve{changed: make(chan struct{})}
	var copying sync.WaitGroup
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		copying.Go(func() {
			io.Copy(valve.writer(way[0]), way[1])
			ended <- struct{}{}
		})
	}
	for going := true; going; {
		select {
		case <-ended:
			going = false
		case <-l.stopped:
			going = false
		case <-changed:
			var now bool
			if now, silent, changed = l.state(k); now && silent {
				valve.shut()
				l.wait(changed)
			}
			going = !now
		}
	}
	valve.shut()
	near.Close()
	far.Close()
	valve.end()
	copying.Wait()
}

func (l *Links) wait(changed <-chan struct{}) {
	select {
	case <-changed:
	case <-l.stopped:
	}
}

// close ends all connections and waits for their goroutines.
func (l *Links) close() {
	close(l.stopped)
	for _, k := range l.links {
		k.listener.Close()
	}
	l.running.Wait()
}

// valve keeps what is written behind it back, once it is shut.
type valve struct {
	mu      sync.Mutex
	closed  bool
	ended   bool
	changed chan struct{} // closed when it has ended
}

func (v *valve) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
}

func (v *valve) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ended {
		v.ended = true
		close(v.changed)
	}
}

func (v *valve) writer(to io.Writer) io.Writer { return valveWriter{v, to} }

type valveWriter struct {
	*valve
	to io.Writer
}

func (w valveWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		<-w.changed
		return 0, fmt.Errorf("the link was cut: %w", net.ErrClosed)
	}
	return w.to.Write(p)
}
