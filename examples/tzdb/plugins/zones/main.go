// Command zones is the plugin of the tzdb example: it reads the IANA time zone
// table, looks at each region of it and writes a report.
package main

import "github.com/flowhost/flowhost/sdk"

func init() {
	sdk.Plugin(sdk.Info{Name: "zones", Version: "1.0.0", Description: "Figures about the IANA time zone table."})
	sdk.Function("parse", parse).Describe("Reads a zone1970.tab and sorts its rows by region.")
	sdk.Function("region", region).Describe("Counts and compares the zones of one region.")
	sdk.Function("report", report).Describe("Puts the regions together, as figures and as Markdown.")
}

func main() {}
