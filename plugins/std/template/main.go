// Plugin template fills templates. It is a module of its own because of its size: templates of Go
// keep everything in a module that they might call by name.
package main

import "github.com/flowhost/flowhost/sdk"

func init() {
	sdk.Plugin(sdk.Info{Name: "std/template", Version: "1", Licence: "Apache-2.0", Description: "Templates of Go."})
	sdk.Function("template.main", render).Describe("Fills a template of Go with data.").Idempotent()
}

func main() {}
