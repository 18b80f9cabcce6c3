package run

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// TaskArtifact is an artifact that the output of a task names: an object
// {"$artifact": "sha256:…", "size": …, "name": …, "content_type": …} anywhere in it.
type TaskArtifact struct {
	Task        string  `json:"task"`
	Key         *string `json:"key"` // of the item of a fan-out, as in a [TaskRecord]
	Name        string  `json:"name"`
	Size        int64   `json:"size"`
	ContentType string  `json:"content_type"`
	Digest      string  `json:"digest"` // "sha256:" and 64 hexadecimal digits
}

// artifactMark is the member of an object that makes it the name of an artifact.
const artifactMark = "$artifact"

// Artifacts returns the artifacts that the outputs of tasks name, in the order of the tasks,
// each once for a task or item. What an item of a fan-out names is the item's, and not the
// fan-out's again.
func (r *Record) Artifacts() []TaskArtifact {
	var all []TaskArtifact
	ofItems := map[TaskArtifact]bool{} // without their keys
	for i := range r.Tasks {
		t := &r.Tasks[i]
		for _, a := range artifactsIn(t.Output) {
			a.Task, a.Key = t.Task, nil
			if t.Key != nil {
				ofItems[a] = true
				a.Key = t.Key
			}
			all = append(all, a)
		}
	}
	return slices.DeleteFunc(all, func(a TaskArtifact) bool { return a.Key == nil && ofItems[a] })
}

// HasArtifact reports whether the output of a task names an artifact.
func (r *Record) HasArtifact(digest string) bool {
	return slices.ContainsFunc(r.Artifacts(), func(a TaskArtifact) bool { return a.Digest == digest })
}

// artifactsIn finds the artifacts that JSON names, each once.
func artifactsIn(text json.RawMessage) []TaskArtifact {
	var value any
	if !bytes.Contains(text, []byte(artifactMark)) || json.Unmarshal(text, &value) != nil {
		return nil
	}
	var all []TaskArtifact
	var walk func(any)
	walk = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, v := range value {
				walk(v)
			}
		case map[string]any:
			if a, ok := artifactOf(value); ok {
				if !slices.Contains(all, a) {
					all = append(all, a)
				}
				return
			}
			for _, name := range slices.Sorted(maps.Keys(value)) {
				walk(value[name])
			}
		}
	}
	walk(value)
	return all
}

// artifactOf reads an object that may name an artifact.
func artifactOf(object map[string]any) (TaskArtifact, bool) {
	digest, _ := object[artifactMark].(string)
	if !IsArtifactDigest(digest) {
		return TaskArtifact{}, false
	}
	a := TaskArtifact{Digest: digest}
	a.Name, _ = object["name"].(string)
	a.ContentType, _ = object["content_type"].(string)
	if size, ok := object["size"].(float64); ok && size >= 0 && size < 1<<53 {
		a.Size = int64(size)
	}
	return a, true
}

// IsArtifactDigest reports whether a text has the form of an artifact's digest.
func IsArtifactDigest(text string) bool {
	return len(text) == digestSize && beginsWithDigest([]byte(text))
}
