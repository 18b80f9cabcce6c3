package flows

import (
	"fmt"
	"path"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
)

// place is a range as texts name it: "orders.hcl:14", the file by its name in
// its folder.
func place(r hcl.Range) string {
	return fmt.Sprintf("%s:%d", path.Base(filepath.ToSlash(r.Filename)), r.Start.Line)
}
