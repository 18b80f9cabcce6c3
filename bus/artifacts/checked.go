package artifacts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
)

// checked is a reader that compares what it reads with the digest. Read from the beginning to
// the end, the last part of a damaged artifact fails. Whoever reads in another order gets
// nothing before the whole artifact has been compared.
type checked struct {
	Reader
	digest string
	sum    hash.Hash
	summed int64 // bytes from the beginning that are in sum
	sound  bool  // all were compared
	failed error // they were, and differ
}

// check makes the reader of an artifact a checked one, also for errors of opening it.
func check(r Reader, err error, digest string) (*checked, error) {
	if err != nil {
		return nil, err
	}
	c := &checked{Reader: r, digest: digest, sum: sha256.New()}
	if err := c.conclude(); err != nil { // an empty artifact is never read
		r.Close()
		return nil, err
	}
	return c, nil
}

// ReadAt implements [Reader]. It fails with ErrDamaged for bytes that are missing, too.
func (c *checked) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	if c.failed != nil {
		return 0, c.failed
	}
	if !c.sound && offset != c.summed {
		if err := c.compare(ctx); err != nil {
			return 0, err
		}
	}
	n, err := c.read(ctx, p, offset)
	if err != nil || c.sound {
		return n, err
	}
	c.sum.Write(p[:n])
	c.summed += int64(n)
	return n, c.conclude()
}

// read reads no more than there should be, and fails if there is less.
func (c *checked) read(ctx context.Context, p []byte, offset int64) (int, error) {
	p = p[:max(min(int64(len(p)), c.Info().Size-offset), 0)]
	n, err := c.Reader.ReadAt(ctx, p, offset)
	if err == nil && n < len(p) {
		err = c.damaged()
	}
	return n, err
}

func (c *checked) damaged() error {
	c.failed = fmt.Errorf("artifact %s: %w", c.digest, ErrDamaged)
	return c.failed
}

// conclude compares the digests when all bytes are summed.
func (c *checked) conclude() error {
	if c.summed < c.Info().Size {
		return nil
	}
	if Digest(c.sum.Sum(nil)) != c.digest {
		return c.damaged()
	}
	c.sound = true
	return nil
}

// compare reads what is not summed yet.
func (c *checked) compare(ctx context.Context) error {
	part := make([]byte, partBytes)
	for !c.sound {
		n, err := c.read(ctx, part, c.summed)
		if err != nil {
			return err
		}
		c.sum.Write(part[:n])
		c.summed += int64(n)
		if err := c.conclude(); err != nil {
			return err
		}
	}
	return nil
}
