package spectest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script is one file of the suite.
type script struct {
	name     string // without the extension
	dir      string
	Commands []command `json:"commands"`
}

// command is one line of a script. Which fields are set depends on its type.
type command struct {
	Type       string  `json:"type"`
	Line       int     `json:"line"`
	Name       string  `json:"name"` // of a module within the script
	As         string  `json:"as"`   // name under which a module can be imported
	Filename   string  `json:"filename"`
	ModuleType string  `json:"module_type"` // "text" or "binary"
	Text       string  `json:"text"`        // why something must fail
	Action     action  `json:"action"`
	Expected   []value `json:"expected"`
}

// action calls a function or reads a global.
type action struct {
	Type   string  `json:"type"`   // "invoke" or "get"
	Module string  `json:"module"` // "" is the latest one
	Field  string  `json:"field"`
	Args   []value `json:"args"`
}

// isText reports whether the command is about the text form.
func (c *command) isText() bool { return c.ModuleType == "text" }

// isAssertion reports whether the command defines how something must end.
func (c *command) isAssertion() bool { return strings.HasPrefix(c.Type, "assert_") }

// suite finds the test suite in the sources of wazero.
func suite(t *testing.T) []string {
	t.Helper()
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatalf("where wazero's sources are: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "internal", "integration_test", "spectest", "v2", "testdata")
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no scripts in %s: %v", dir, err)
	}
	return paths
}

func readScript(t *testing.T, path string) *script {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{dir: filepath.Dir(path), name: strings.TrimSuffix(filepath.Base(path), ".json")}
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

// binary is a module that a command names.
func (s *script) binary(c *command) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.dir, c.Filename))
}
