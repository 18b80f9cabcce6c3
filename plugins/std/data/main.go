// Plugin data is the standard functions that compute: they reach nothing but the artifacts that
// their tasks are granted.
//
// A flow names a part of it, and a function of that part:
//
//	task "rows" {
//	  plugin   = "std/csv"
//	  function = "parse"
//	  input    = { text = task.download.output.body }
//	}
//
// To read it: a file for each part.
package main

import "github.com/flowhost/flowhost/sdk"

func init() {
	sdk.Plugin(sdk.Info{
		Name: "std/data", Version: "1", Licence: "Apache-2.0",
		Description: "CSV, lines of JSON, archives, hashes, checks and waits.",
	})
	sdk.Function("csv.parse", parseCSV).Describe("Reads rows of CSV.").Idempotent()
	sdk.Function("csv.format", formatCSV).Describe("Writes rows as CSV.").Idempotent()
	sdk.Function("jsonl.parse", parseLines).Describe("Reads lines of JSON.").Idempotent()
	sdk.Function("jsonl.format", formatLines).Describe("Writes values as lines of JSON.").Idempotent()
	sdk.Function("archive.extract", extract).Describe("Extracts the files of a zip or tar archive as artifacts.").Idempotent()
	sdk.Function("archive.create", create).Describe("Makes a zip or tar archive of texts and artifacts.").Idempotent()
	sdk.Function("hash.main", sum).Describe("Hashes a text or an artifact.").Idempotent()
	sdk.Function("assert.main", assert).Describe("Fails unless all of the given conditions are true.").Idempotent()
	sdk.Function("sleep.main", sleep).Describe("Waits.").Idempotent()
}

func main() {}
