package compile

import (
	"errors"
	"io/fs"
	"os"
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
// time, and wazero does not name it, so Mend removes all modules from the cache, also empty files. What could
// not be written needs no mending: wazero has it in memory then.
func (c *Compiler) Mend(fault error) {
	if !strings.HasPrefix(fault.Error(), cacheFault) {
		c.Log.Warn("a compiled module cannot be stored in the cache", "error", fault)
		return
	}
	c.Log.Warn("the cache of compiled modules is damaged: all modules in it are removed, and compile again", "error", fault)
	if err := pruneCache(c.dir, -1); err != nil {
		c.Log.Warn("compiled modules cannot be removed", "error", err)
	}
}
