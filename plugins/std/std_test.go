package std_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/plugins/std"
)

// Each plugin is a part of its module, and the page describes it.
func TestPlugins(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/standard-plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range std.Names() {
		m, ok := std.Find(name)
		if !ok || m.Digest == "" {
			t.Fatalf("%s: %+v", name, m)
		}
		binary, err := m.Open()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(binary, []byte(`"`+name+`.`)) {
			t.Errorf("module %s has no part %s", m.Name, name)
		}
		if !strings.Contains(string(page), "| `std/"+name+"` |") {
			t.Errorf("the page does not describe std/%s", name)
		}
	}
	for _, found := range regexp.MustCompile("`std/([a-z]+)`").FindAllStringSubmatch(string(page), -1) {
		if _, ok := std.Find(found[1]); !ok {
			t.Errorf("the page describes std/%s, which does not exist", found[1])
		}
	}
	if _, ok := std.Find("nothing"); ok {
		t.Error("a plugin that does not exist was found")
	}
}
