package compile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// cacheFault begins wazero's errors about a file of its cache that it cannot decode.
const cacheFault = "compilationcache: "

// IsStorageFault reports whether wazero failed because of the files of its cache, so that
// the module is not to blame.
func IsStorageFault(err error) bool {
	var file *fs.PathError
	var link *os.LinkError
	return errors.As(err, &file) || errors.As(err, &link) || strings.HasPrefix(err.Error(), cacheFault)
}

// Mend is called after a storage fault, before the next try. A damaged file would fail each
// time, and wazero does not name it, so Mend removes all native code. What could not be
// written needs no mending: wazero has it in memory then.
func (c *Compiler) Mend(fault error) {
	if !strings.HasPrefix(fault.Error(), cacheFault) {
		c.Log.Warn("a compiled module cannot be stored in the cache", "error", fault)
		return
	}
	c.Log.Warn("the cache of compiled modules is damaged; its native code is removed, and modules compile again", "error", fault)
	for _, version := range c.codeDirs() {
		if err := os.RemoveAll(version); err != nil {
			c.Log.Warn("damaged native code cannot be removed", "error", err)
		} else if err := os.Mkdir(version, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			c.Log.Warn("a directory for compiled modules cannot be made again", "error", err)
		}
	}
}

// codeDirs is the directories that wazero has made. It makes them only when a cache is
// opened.
func (c *Compiler) codeDirs() []string {
	dirs, _ := filepath.Glob(filepath.Join(c.dir, "wazero-*")) // the pattern is right
	return dirs
}
