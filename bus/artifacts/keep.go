package artifacts

import (
	"context"
	"crypto/sha256"
	"fmt"
)

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
