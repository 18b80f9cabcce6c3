package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

func TestPrivateDirectoriesAreNotGranted(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	folder := func(names ...string) string {
		path := filepath.Join(append([]string{root}, names...)...)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(to string, names ...string) {
		if err := os.Symlink(to, filepath.Join(append([]string{root}, names...)...)); err != nil {
			t.Fatal(err)
		}
	}
	flows, data := folder("flows"), folder("flows", "state", "data")
	cache := folder("cache")
	folder("flows", "state", "data", "modules")
	folder("flows", "files", "data")
	folder("flows", "state", "database")
	link(flows, "way")
	link(data, "private")
	h := newHost(t, host.Config{Private: []string{filepath.Join(root, "private"), cache, filepath.Join(root, "flows", "later")}})
	digest := loadBytes(t, h, noop().bytes())
	for _, tt := range []struct {
		folder, path string
		write        bool
		refused      string // a part of the message; "": it is granted
	}{
		{flows, "files", false, ""},
		{flows, "files/data", false, ""},
		{flows, "state/database", false, ""}, // begins like the private one
		{flows, "state/data", false, "private"},
		{flows, "state/data/modules", false, "private"},
		{flows, "state", false, "private"},
		{flows, ".", false, "private"},
		{filepath.Join(root, "way"), "state/data", false, "private"},
		{filepath.Join(root, "way", "state"), "data", true, "private"},
		{filepath.Join(root, "way", "..", "flows", "state"), "data/./", false, "private"},
		{root, "cache", false, "cache"},
		{root, "cache/new", true, "cache"},
		{flows, "later", true, "later"}, // is not there yet, and would be made
		{flows, "later/in/it", true, "later"},
	} {
		call := callOf(digest, "", "1")
		call.Grants.Files = []run.FileGrant{{Folder: tt.folder, Path: tt.path, Guest: "/data", Write: tt.write}}
		result := invoke(t, h, call)
		if tt.refused == "" {
			wantOutput(t, result, "null")
			continue
		}
		failure := wantFailure(t, result, run.OutcomeRejected, run.CodeGrant)
		if !strings.Contains(failure.Message, filepath.Join(root)) || !strings.Contains(failure.Message, tt.refused+", where the host keeps its own data") || failure.Retryable {
			t.Errorf("%s %s: %+v", tt.folder, tt.path, failure)
		}
	}
	for _, made := range []string{filepath.Join(cache, "new"), filepath.Join(flows, "later")} {
		if _, err := os.Stat(made); err == nil {
			t.Errorf("%s was made", made)
		}
	}
}
