package host

import (
	"time"
)

// rest is what the pool notes of an idle instance.
type rest struct {
	links [2]struct{ before, after *instance } // in pool.idle and line.idle
	line  *line
	bytes int64 // that it holds for itself
	since time.Time
}

// idleList is a list of idle instances that takes no memory: each has its links in itself.
type idleList struct {
	link        int // which of the links are this list's
	front, back *instance
	length      int
}

const (
	linkOfPool = iota
	linkOfLine
)

func (l *idleList) add(i *instance) {
	i.rest.links[l.link].before = l.back
	if l.back == nil {
		l.front = i
	} else {
		l.back.rest.links[l.link].after = i
	}
	l.back = i
	l.length++
}

func (l *idleList) remove(i *instance) {
	own := i.rest.links[l.link]
	if own.before == nil {
		l.front = own.after
	} else {
		own.before.rest.links[l.link].after = own.after
	}
	if own.after == nil {
		l.back = own.before
	} else {
		own.after.rest.links[l.link].before = own.before
	}
	l.length--
}

// take gives an idle instance of the lease's image, nil when there is none. The
// one that was used last is the one whose memory is nearest.
func (l *lease) take() *instance {
	p := l.pool
	p.mu.Lock()
	defer p.unlock()
	last := l.line.idle.back
	if last != nil {
		p.remove(last)
	}
	return last
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
	if p.idle.length == p.spare {
		p.evict(p.idle.front)
	}
	p.bytes -= bytes
	p.idleBytes += bytes
	i.rest = rest{line: l.line, bytes: bytes, since: time.Now()}
	p.idle.add(i)
	l.line.idle.add(i)
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(p.lifetime, p.sweep)
	}
}

// evict closes an idle instance, once the lock is free.
func (p *pool) evict(i *instance) {
	p.remove(i)
	p.doomed = append(p.doomed, i)
}

// remove takes an instance from the idle ones.
func (p *pool) remove(i *instance) {
	p.idle.remove(i)
	i.rest.line.idle.remove(i)
	p.bytes += i.rest.bytes
	p.idleBytes -= i.rest.bytes
	i.rest = rest{}
}

// forget closes the idle instances of an image that nobody uses any more.
func (p *pool) forget(image *image) {
	p.mu.Lock()
	defer p.unlock()
	own := p.lines[image]
	if own == nil {
		return
	}
	for own.idle.front != nil {
		p.evict(own.idle.front)
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
	for first := p.idle.front; first != nil; first = p.idle.front {
		left := p.lifetime - time.Since(first.rest.since)
		if left > 0 {
			p.sweeper = time.AfterFunc(left, p.sweep)
			return
		}
		p.evict(first)
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
	for p.idle.front != nil {
		p.evict(p.idle.front)
	}
}
