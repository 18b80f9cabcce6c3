// Command pg is a plugin of the nightly example: it stands for a database that is
// asked for its tables. The databases are made up.
package main

import (
	"slices"
	"time"

	"github.com/flowhost/flowhost/sdk"
)

type question struct {
	Host  string    `json:"host"`
	Since time.Time `json:"since"` // tables that have not changed since then are left out
}

// databases are the tables of each host, with the age of their last change.
var databases = map[string]map[string]time.Duration{
	"pg.eu.example": {"orders": time.Hour, "customers": 30 * time.Hour},
	"pg.us.example": {"orders": 2 * time.Hour, "audit": 3 * time.Hour},
}

func init() {
	sdk.Plugin(sdk.Info{Name: "pg", Version: "1.0.0", Description: "Tables of made-up databases."})
	sdk.Function("list_tables", listTables).Describe("Names the tables that have changed since a time.")
}

func listTables(ctx sdk.Context, in question) ([]string, error) {
	tables, known := databases[in.Host]
	if !known {
		return nil, sdk.Fail("host", "there is no database at %q", in.Host)
	}
	changed := []string{}
	for table, age := range tables {
		if time.Now().Add(-age).After(in.Since) {
			changed = append(changed, table)
		}
	}
	slices.Sort(changed)
	ctx.Log().Info("tables", "host", in.Host, "changed", len(changed))
	return changed, nil
}

func main() {}
