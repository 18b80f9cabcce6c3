package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/sdk"
)

type parts struct {
	Zones   int       `json:"zones"` // in the whole table
	Regions []summary `json:"regions"`
}

type result struct {
	Totals   row    `json:"totals"`
	Regions  []row  `json:"regions"` // by number of zones, the most first
	Markdown string `json:"markdown"`
}

// row is one line of the report.
type row struct {
	Region           string   `json:"region"`
	Zones            int      `json:"zones"`
	Countries        int      `json:"countries"`
	Commented        int      `json:"commented"`
	CommentedPercent float64  `json:"commented_percent"` // rounded to one decimal
	Extremes         extremes `json:"extremes"`
}

func report(ctx sdk.Context, in parts) (result, error) {
	total, err := add(in.Regions)
	if err != nil {
		return result{}, err
	}
	if total.Zones != in.Zones {
		return result{}, sdk.Fail("incomplete", "the regions have %d of the table's %d zones: a region is missing in the flow", total.Zones, in.Zones)
	}
	r := result{Totals: newRow(total)}
	for _, s := range in.Regions {
		r.Regions = append(r.Regions, newRow(s))
	}
	slices.SortFunc(r.Regions, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.Zones, a.Zones), cmp.Compare(a.Region, b.Region))
	})
	r.Markdown = markdown(r)
	ctx.Log().Info("reported", "regions", len(r.Regions), "zones", total.Zones)
	return r, nil
}

// add sums regions up. Countries count once, also those in several regions.
func add(regions []summary) (summary, error) {
	if len(regions) == 0 {
		return summary{}, sdk.Fail("incomplete", "there are no regions to report on")
	}
	total := summary{Region: "World"}
	var places []place
	for _, s := range regions {
		total.Zones += s.Zones
		total.Commented += s.Commented
		total.Countries = append(total.Countries, s.Countries...)
		places = append(places, s.Extremes.North, s.Extremes.South, s.Extremes.East, s.Extremes.West)
	}
	slices.Sort(total.Countries)
	total.Countries = slices.Compact(total.Countries)
	total.Extremes = outermost(places)
	return total, nil
}

func newRow(s summary) row {
	return row{
		Region: s.Region, Zones: s.Zones, Countries: len(s.Countries), Commented: s.Commented,
		CommentedPercent: percent(s.Commented, s.Zones), Extremes: s.Extremes,
	}
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(1000*float64(part)/float64(whole)) / 10
}

func markdown(r result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Time zones since 1970\n\n%d zones in %d countries and territories, in %d regions.\n\n",
		r.Totals.Zones, r.Totals.Countries, len(r.Regions))
	b.WriteString("| region | zones | countries | with comments | northernmost | southernmost | easternmost | westernmost |\n")
	b.WriteString("| --- | ---: | ---: | ---: | --- | --- | --- | --- |\n")
	for _, row := range append(slices.Clone(r.Regions), r.Totals) {
		e := row.Extremes
		fmt.Fprintf(&b, "| %s | %d | %d | %.1f %% | %s | %s | %s | %s |\n",
			row.Region, row.Zones, row.Countries, row.CommentedPercent,
			cell(e.North, e.North.Latitude.format("NS")), cell(e.South, e.South.Latitude.format("NS")),
			cell(e.East, e.East.Longitude.format("EW")), cell(e.West, e.West.Longitude.format("EW")))
	}
	return b.String()
}

// cell names a place without its region, which the row has.
func cell(p place, where string) string {
	_, name, _ := strings.Cut(p.Zone, "/")
	return strings.ReplaceAll(name, "_", " ") + " " + where
}
