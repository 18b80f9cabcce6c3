package crashtest

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// flowFile contains the flows of a [Site]. For their outputs see [outputOf].
//
//go:embed testdata/flows.hcl
var flowFile []byte

// outputOf is the output of a flow of [flowFile] for a number.
func outputOf(flow string, n int) string {
	switch flow {
	case "chain":
		n += 3
	case "fan":
		n = 3*n + 6
	case "branches": // three items, and the output of the groups through the sub-flow
		n = 3*n + 6 + n + 4 + 5 + 1
	case "inner", "sequel":
		n++
	case "flaky":
		n += 10
	case "effect":
		n += 21
	case "clock":
		n = 2
	}
	return fmt.Sprintf(`{"n":%d}`, n)
}

// Site is a directory with flows and their module. Its tasks append their effects to
// files, one for each last character of a run's id.
type Site struct {
	Dir string // of the flow file
}

// NewSite makes a site in an empty directory. module is the built guest chores;
// settings is the content of flowhost.hcl, empty for none.
func NewSite(dir, module, settings string) (*Site, error) {
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "effects"), 0o700),
		os.WriteFile(filepath.Join(dir, "flows.hcl"), flowFile, 0o600),
		os.Link(module, filepath.Join(dir, "chores.wasm")))
	if err == nil && settings != "" {
		err = os.WriteFile(filepath.Join(dir, "flowhost.hcl"), []byte(settings), 0o600)
	}
	return &Site{Dir: dir}, err
}

// Effects counts the effects of task runs by their idempotency keys.
func (s *Site) Effects() (map[string]int, error) {
	names, err := filepath.Glob(filepath.Join(s.Dir, "effects", "*.txt"))
	effects := map[string]int{}
	for _, name := range names {
		err = errors.Join(err, count(name, effects))
	}
	return effects, err
}

func count(name string, effects map[string]int) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		effects[strings.TrimSpace(lines.Text())]++
	}
	return lines.Err()
}
