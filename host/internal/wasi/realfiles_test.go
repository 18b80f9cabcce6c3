package wasi

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sysfs"
)

// newRealFiles makes a directory with some of each, links that lead to them, and
// one that leads nowhere.
func newRealFiles(t testing.TB) string {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Mkdir(at("dir"), 0o700), os.Mkdir(at("empty"), 0o700),
		os.WriteFile(at("file"), []byte("text"), 0o600), os.WriteFile(at("dir/b"), nil, 0o600),
		os.Symlink("file", at("tofile")), os.Symlink("dir", at("todir")), os.Symlink("none", at("dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Above all about slashes at the end of paths: wazero leaves them to the system,
// which this package never shows any.
func TestPathsOnRealFiles(t *testing.T) {
	t.Parallel()
	paths := []string{"file", "dir", "empty", "tofile", "todir", "dangling", "none", "file/b", "dir/.", "dir/..", ".", "",
		"file/", "dir/", "empty/", "tofile/", "todir/", "dangling/", "none/", "dir/b/", "./"}
	for _, c := range []struct {
		name          string
		before, after []uint64 // the path
	}{
		{"path_filestat_get", []uint64{3, 0}, []uint64{atData}},
		{"path_filestat_get", []uint64{3, 1}, []uint64{atData}},
		{"path_filestat_set_times", []uint64{3, 1}, []uint64{1, 1, uint64(setAtim | setMtim)}},
		{"path_open", []uint64{3, 0}, []uint64{0, rightRead, 0, 0, atResult}},
		{"path_open", []uint64{3, 1}, []uint64{0, rightRead, 0, 0, atResult}},
		{"path_open", []uint64{3, 1}, []uint64{uint64(openDirectory), rightRead, 0, 0, atResult}},
		{"path_open", []uint64{3, 1}, []uint64{uint64(openCreate), rightWrite, 0, 0, atResult}},
		{"path_open", []uint64{3, 1}, []uint64{uint64(openTruncate), rightWrite, 0, 0, atResult}},
		{"path_readlink", []uint64{3}, []uint64{atData, 100, atResult}},
		{"path_create_directory", []uint64{3}, nil},
		{"path_unlink_file", []uint64{3}, nil},
		{"path_remove_directory", []uint64{3}, nil},
		{"path_rename", []uint64{3}, []uint64{3, atPath2, uint64(len("new"))}},
		{"path_rename", []uint64{3}, []uint64{3, atPath2, uint64(len("new/"))}},
	} {
		for _, p := range paths {
			if path.Clean(p) == "." && (c.name == "path_remove_directory" || c.name == "path_rename") {
				continue // refused in another way
			}
			ours, theirs := newRealFiles(t), newRealFiles(t)
			var answers []errno
			for _, g := range []*guest{newGuest(t, &Process{FS: sysfs.DirFS(ours)}), newTheirs(t, &Process{FS: sysfs.DirFS(theirs)})} {
				ptr, n := g.path(atPath, p)
				g.put(atPath2, "new/")
				answers = append(answers, g.call(c.name, slices.Concat(c.before, []uint64{ptr, n}, c.after)...))
			}
			if answers[0] != answers[1] || tree(t, ours) != tree(t, theirs) {
				t.Errorf("%s%v %q %v answers %d, wazero's %d\n%s", c.name, c.before, p, c.after, answers[0], answers[1], tree(t, ours))
			}
		}
	}
}
