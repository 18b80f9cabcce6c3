package artifacts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"
)

// Sweep is [Store.Sweep] that also keeps what attempts have made that still run.
func (a *Artifacts) Sweep(ctx context.Context, referenced func(digest string) (bool, error), now time.Time) (Swept, error) {
	return a.cfg.Store.Sweep(ctx, func(digest string) (bool, error) {
		if a.held(digest) {
			return true, nil
		}
		return referenced(digest)
	}, now)
}

func (a *Artifacts) hold(digest string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made[digest]++
}

func (a *Artifacts) held(digest string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.made[digest] > 0
}

func (a *Artifacts) release(digests []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, digest := range digests {
		if a.made[digest]--; a.made[digest] == 0 {
			delete(a.made, digest)
		}
	}
}

// Keep stores bytes that the host itself has, and returns their digest. Bytes that are
// stored already are kept for another Grace.
func (a *Artifacts) Keep(ctx context.Context, content []byte, contentType string) (string, error) {
	if int64(len(content)) > a.cfg.Max {
		return "", fmt.Errorf("%d bytes are more than the %d of one artifact", len(content), a.cfg.Max)
	}
	sum := sha256.Sum256(content)
	digest := Digest(sum[:])
	w, err := a.cfg.Store.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer w.Discard(context.WithoutCancel(ctx))
	if err := w.Write(ctx, content); err != nil {
		return "", err
	}
	return digest, w.Commit(ctx, digest, Info{Size: int64(len(content)), ContentType: contentType}, a.cfg.Now())
}

// Load returns all bytes of an artifact that [Artifacts.Keep] has stored.
func (a *Artifacts) Load(ctx context.Context, digest string) ([]byte, error) {
	found, err := a.cfg.Store.Open(ctx, digest)
	r, err := check(found, err, digest)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content := make([]byte, r.Info().Size)
	_, err = r.ReadAt(ctx, content, 0)
	return content, err
}
