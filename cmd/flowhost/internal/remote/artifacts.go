package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/run"
)

// PickArtifact finds the artifact of a task, and of an item if the task is one, by its name
// or digest, or the only one for "".
func PickArtifact(record *run.Record, task run.TaskRef, name string) (run.TaskArtifact, error) {
	var found []run.TaskArtifact
	var names []string
	for _, a := range record.Artifacts() {
		ref := run.TaskRef{Task: a.Task}
		if a.Key != nil {
			ref.Key = *a.Key
		}
		if ref != task && (task.Key != "" || ref.Task != task.Task) {
			continue
		}
		label := ref.Label() + " " + a.Name
		if names = append(names, label); name == "" || a.Name == name || a.Digest == name {
			found = append(found, a)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(names) == 0 && record.Truncated:
		return run.TaskArtifact{}, cli.Exitf(cli.ExitInvalid, "the record of run %s is too large for one message and lacks outputs: the artifacts of task %s are not known", record.Run, task.Label())
	case len(names) == 0:
		return run.TaskArtifact{}, cli.Exitf(cli.ExitInvalid, "the output of task %s in run %s names no artifact: 'flowhost artifact list %s' lists those of the run", task.Label(), record.Run, record.Run)
	case len(found) == 0:
		return run.TaskArtifact{}, cli.Exitf(cli.ExitInvalid, "task %s of run %s has no artifact %q: 'flowhost artifact list %s' lists those of the run", task.Label(), record.Run, name, record.Run)
	}
	return run.TaskArtifact{}, cli.Exitf(cli.ExitInvalid, "%d artifacts match, name one by its digest or its item, TASK[KEY]: 'flowhost artifact list %s' lists them", len(found), record.Run)
}

// Download writes the bytes of an artifact and checks them against its digest. got is called
// after each part with the number of bytes so far and in all.
func (r *Host) Download(ctx context.Context, client *api.Client, id run.ID, digest string, w io.Writer, got func(now, all int64)) error {
	sum := sha256.New()
	for offset := int64(0); ; {
		var part api.ArtifactPart
		err := r.Persistently(ctx, func() (err error) {
			part, err = client.Artifact(ctx, id, digest, offset)
			return err
		})
		if err != nil {
			return err
		}
		if _, err := w.Write(part.Data); err != nil {
			return err
		}
		sum.Write(part.Data)
		offset += int64(len(part.Data))
		got(offset, part.Size)
		switch {
		case offset < part.Size && len(part.Data) > 0:
		case "sha256:"+hex.EncodeToString(sum.Sum(nil)) != digest:
			return fmt.Errorf("the %d bytes that the host has for artifact %s have another digest: it is damaged, run the task again", offset, digest)
		default:
			return nil
		}
	}
}
