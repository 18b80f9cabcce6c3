package sqlreach

import (
	"sync"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxMemory bounds what SQLite holds for all connections together, in bytes: sorting,
// grouping and joining take as much as they find, and a statement that needs more fails. The
// process takes up to twice as much, as SQLite's memory is fragmented.
const maxMemory = 128 << 20

// boundMemory reports whether SQLite is bounded. It counts what it holds only if that is
// asked before anybody opens a database.
var boundMemory = sync.OnceValue(func() bool {
	tls := libc.NewTLS()
	defer tls.Close()
	count := libc.NewVaList(int32(1))
	defer libc.Xfree(tls, count)
	if sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MEMSTATUS, count) != sqlite3.SQLITE_OK {
		return false
	}
	sqlite3.Xsqlite3_hard_heap_limit64(tls, maxMemory)
	return true
})
