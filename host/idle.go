package host

import (
	"container/list"
	"time"
)

// rest is an idle instance.
type rest struct {
	*instance
	bytes int64 // that it holds for itself
	since time.Time
}

// take gives an idle instance of the lease's image, nil when there is none. The
// one that was used last is the one whose memory is nearest.
func (l *lease) take() *instance {
	p := l.pool
	p.mu.Lock()
	defer p.unlock()
	own := p.lineOf(l.image)
	if len(own.idle) == 0 {
		return nil
	}
	return p.remove(own.idle[len(own.idle)-1]).instance
}

// keep lays an instance by for later calls, if there is room for it.
func (l *lease) keep(i *instance) {
	p := l.pool
	p.mu.Lock()
	defer p.unlock()
	bytes := int64(i.memory.Private()) + i.image.footprint + i.stack
	if p.closed || p.spare == 0 || p.bytes < bytes {
		p.doomed = append(p.doomed, i)
		return
	}
	if p.idle.Len() == p.spare {
		p.evict(p.idle.Front())
	}
	p.bytes -= bytes
	p.idleBytes += bytes
	own := p.lineOf(l.image)
	own.idle = append(own.idle, p.idle.PushBack(&rest{i, bytes, time.Now()}))
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(p.lifetime, p.sweep)
	}
}

// evict closes an idle instance, once the lock is free.
func (p *pool) evict(place *list.Element) {
	p.doomed = append(p.doomed, p.remove(place).instance)
}

// remove takes an instance from the idle ones.
func (p *pool) remove(place *list.Element) *rest {
	r := p.idle.Remove(place).(*rest)
	p.bytes += r.bytes
	p.idleBytes -= r.bytes
	own := p.lineOf(r.image)
	for n, other := range own.idle {
		if other == place {
			own.idle = append(own.idle[:n], own.idle[n+1:]...)
			break
		}
	}
	return r
}

// forget closes the idle instances of an image that nobody uses any more.
func (p *pool) forget(image *image) {
	p.mu.Lock()
	defer p.unlock()
	own := p.lines[image]
	if own == nil {
		return
	}
	for len(own.idle) > 0 {
		p.evict(own.idle[0])
	}
	delete(p.lines, image)
	p.advance()
}

// sweep closes the instances that nobody has needed for their lifetime.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.unlock()
	p.sweeper = nil
	if p.closed {
		return
	}
	for front := p.idle.Front(); front != nil; front = p.idle.Front() {
		left := p.lifetime - time.Since(front.Value.(*rest).since)
		if left > 0 {
			p.sweeper = time.AfterFunc(left, p.sweep)
			return
		}
		p.evict(front)
	}
	p.advance()
}

// close closes all idle instances, and those that come back from now on. No
// call may be waiting.
func (p *pool) close() {
	p.mu.Lock()
	defer p.unlock()
	p.closed = true
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	for p.idle.Len() > 0 {
		p.evict(p.idle.Front())
	}
}
