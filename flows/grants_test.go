package flows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

const granting = `
variable "zone" {
  default = "eu"
}
locals {
  reports = "./reports"
}
plugin "p" {
  source = "./greet.wasm"
  grant {
    files = { "./data/${var.zone}/" = "ro", (local.reports) = "rw" }
  }
}
flow "f" {
  task "all" {
    plugin = plugin.p
  }
  task "narrow" {
    plugin = plugin.p
    grant {
      files = { "./reports/2026" = "ro" }
    }
  }
  task "none" {
    plugin = plugin.p
    grant {
    }
  }
  task "path" {
    plugin = "./greet.wasm"
    grant {
      files = { "out" = "rw" }
    }
  }
  task "nothing" {
    plugin = "./greet.wasm"
  }
}
`

func TestGrants(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.hcl": granting, "data/eu/x.csv": ""})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	if len(diags) > 0 {
		t.Fatal(text(set, diags))
	}
	f := onlyFlow(t, set)
	grant := func(path string, write bool) run.FileGrant {
		return run.FileGrant{Folder: dir, Path: path, Guest: "/" + path, Write: write}
	}
	want := map[string][]run.FileGrant{
		"all": {grant("data/eu", false), grant("reports", true)}, "narrow": {grant("reports/2026", false)},
		"none": nil, "path": {grant("out", true)}, "nothing": nil,
	}
	if diff := cmp.Diff(want, grantsOf(f)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("loading has made a folder")
	}

	if err := os.RemoveAll(dir); err != nil { // a run goes on without the files, and is told by the host
		t.Fatal(err)
	}
	again, diags := Restore(t.Context(), f.Definition, Options{Catalog: byDigest{modules}})
	if len(diags) > 0 {
		t.Fatal(text(again, diags))
	}
	g := onlyFlow(t, again)
	if diff := cmp.Diff(want, grantsOf(g)); diff != "" {
		t.Error(diff)
	}
	if g.DefinitionDigest != f.DefinitionDigest || f.Definition.Folder != dir {
		t.Errorf("restored %+v of %+v", g.Definition, f.Definition)
	}
}

func grantsOf(f *Flow) map[string][]run.FileGrant {
	out := map[string][]run.FileGrant{}
	for _, t := range f.Tasks {
		out[t.Name] = t.Grants.Files
	}
	return out
}

func TestDefinitionsWithoutGrantsHaveNoFolder(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, "plugin \"p\" {\n  source = \"./greet.wasm\"\n  grant {\n    files = {}\n  }\n}\n"+smallFlow("f"))
	if f.Definition.Folder != "" {
		t.Error("the definition depends on where the files are")
	}
}

func TestGrantsFromAWorkingFolder(t *testing.T) {
	dir := folder(t, map[string]string{"flows/f.hcl": granting, "flows/data/eu/x.csv": ""})
	t.Chdir(dir)
	set, diags := Load(t.Context(), []string{"flows"}, Options{Catalog: modules})
	if len(diags) > 0 {
		t.Fatal(text(set, diags))
	}
	if got, want := set.Flows[0].Definition.Folder, filepath.Join(dir, "flows"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// grantTo is a flow file whose task is granted something by itself.
func grantTo(name, files string) string {
	return "flow \"" + name + "\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    grant {\n      files = " + files + "\n    }\n  }\n}\n"
}

func TestGrantsOfFoldersThatAreNotWhatTheySeem(t *testing.T) {
	t.Parallel()
	outside := folder(t, map[string]string{"secret.txt": "x"})
	dir := folder(t, map[string]string{"f.hcl": grantTo("f", `{ "./out" = "ro", "./up" = "rw", "./file/x" = "rw", "./inside" = "ro", "./deep/link/x" = "ro", "./real" = "ro" }`), "file": "", "deep/data/x/y": "", "real/x": ""})
	for name, target := range map[string]string{"out": outside, "up": "../x", "inside": "real", "deep/link": "data"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	if diff := cmp.Diff([]string{"f.hcl:5 grant", "f.hcl:5 grant", "f.hcl:5 grant", "f.hcl:5 grant", "f.hcl:5 grant"}, complaints(diags)); diff != "" {
		t.Error(diff, text(set, diags))
	}
	for _, name := range []string{"./out cannot", "./up cannot", "./file/x cannot", "./inside cannot", "./deep/link/x cannot"} {
		if !strings.Contains(text(set, diags), name) {
			t.Errorf("nothing says that %s be used", name)
		}
	}
}

func TestTasksCannotWidenGrants(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"data/in/x": "", "f.hcl.json": `{
		"plugin": {"p": {"source": "./greet.wasm", "grant": {"files": {"./data": "ro"}}}},
		"flow": {"f": {"task": {
			"deeper": {"plugin": "plugin.p", "grant": {"files": {"./data/in": "ro"}}},
			"wider":  {"plugin": "plugin.p", "grant": {"files": {"./data/in": "rw"}}}
		}}}
	}`})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	if diff := cmp.Diff([]string{"f.hcl.json:5 grant"}, complaints(diags)); diff != "" {
		t.Error(diff)
	}
	if out := text(set, diags); !strings.Contains(out, `granted "./data" as "ro" only`) {
		t.Error(out)
	}
}

// TestFlowFilesOfGuests has a guest leave files where flow files are looked for.
func TestFlowFilesOfGuests(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a/deep/f.hcl":                    grantTo("f", `{ "./out" = "rw" }`),
		"a/deep/out/evil.hcl":             smallFlow("evil") + "variable \"token\" {\n}\n",
		"a/deep/out/further/broken.hcl":   "flow {",
		"a/deep/out/values.auto.vars.hcl": "x =",
		"a/deep/outer/g.hcl":              strings.ReplaceAll(smallFlow("g"), "./greet", "../greet"),
	})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	if diags.HasErrors() {
		t.Fatal(text(set, diags))
	}
	if diff := cmp.Diff([]string{"a/deep/f", "a/deep/outer/g"}, names(set)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"evil.hcl:1 grant", "broken.hcl:1 grant"}, complaints(diags)); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadableFoldersOfGuests(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.hcl": grantTo("f", `{ "./out" = "rw" }`), "out/x": ""})
	l := newLoader(t.Context(), Options{Catalog: modules})
	sources := l.find([]string{dir})
	for _, name := range []string{"out/a/b", "other"} {
		l.unsearched = append(l.unsearched, l.unreadable(filepath.Join(dir, name), os.ErrPermission))
	}
	l.loadAll(sources)
	if diff := cmp.Diff([]string{"other:1 path"}, complaints(l.diags.All())); diff != "" {
		t.Error(diff)
	}
}
