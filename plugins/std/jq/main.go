// Plugin jq runs programs of jq. It is a module of its own because of its size.
package main

import "github.com/flowhost/flowhost/sdk"

func init() {
	sdk.Plugin(sdk.Info{Name: "std/jq", Version: "1", Licence: "Apache-2.0", Description: "Programs of jq."})
	sdk.Function("jq.main", jq).Describe("Runs a program of jq and returns its first result.").Idempotent()
	sdk.Function("jq.all", jqAll).Describe("Runs a program of jq and returns all of its results.").Idempotent()
}

func main() {}
