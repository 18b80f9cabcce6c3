package api

import (
	"context"

	"github.com/flowhost/flowhost/run"
)

// MaxArtifactPart is the size in bytes of the largest part of an artifact that one answer has.
const MaxArtifactPart = 1 << 20

// ArtifactRequest asks for a part of an artifact that the output of a task of a run names.
type ArtifactRequest struct {
	RunRequest
	Digest string `json:"digest"`
	Offset int64  `json:"offset"`
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *ArtifactRequest) Check() error {
	switch {
	case !run.IsArtifactDigest(b.Digest):
		return run.Requestf(run.RequestParams, "digest: %.80q is no digest of an artifact, sha256: and 64 hexadecimal digits in lower case", b.Digest)
	case b.Offset < 0:
		return run.Requestf(run.RequestParams, "offset: %d is less than 0", b.Offset)
	}
	return b.RunRequest.Check()
}

// ArtifactPart is the answer: bytes from the offset on. There are none at the end.
type ArtifactPart struct {
	Size int64  `json:"size"` // of the whole artifact
	Data []byte `json:"data"`
}

// Artifact gives a part of an artifact, at most MaxArtifactPart bytes and less where messages
// must be smaller.
func (c *Client) Artifact(ctx context.Context, id run.ID, digest string, offset int64) (ArtifactPart, error) {
	var part ArtifactPart
	err := c.ask(ctx, VerbArtifact, ArtifactRequest{RunRequest{id}, digest, offset}, &part)
	return part, err
}
