package natsd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/bus/natsd"
)

// Nothing that is in the directory of keys is replaced.
func TestServerConfigurationLeavesFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{natsd.ClientContext, natsd.OperatorContext, natsd.EngineSeed} {
		dir := t.TempDir()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("somebody's"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := natsd.ExternalConfiguration(natsd.ExternalConfig{Keys: dir, URL: "nats://example.com"})
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
		text, err := os.ReadFile(file)
		if err != nil || string(text) != "somebody's" {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
