package main

import (
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/sdk"
)

type source struct {
	Table string `json:"table"` // the text of zone1970.tab
}

type table struct {
	Zones   int               `json:"zones"`
	Regions map[string][]zone `json:"regions"` // by the first part of the name, rows in the table's order
}

// zone is one row of the table.
type zone struct {
	Name      string   `json:"name"`      // "Africa/Abidjan"
	Countries []string `json:"countries"` // ISO 3166 codes
	Latitude  angle    `json:"latitude"`  // of the principal place, in arc seconds
	Longitude angle    `json:"longitude"`
	Comments  string   `json:"comments"`
}

func parse(ctx sdk.Context, in source) (table, error) {
	t := table{Regions: map[string][]zone{}}
	number := 0
	for line := range strings.Lines(in.Table) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		z, err := parseRow(line)
		if err != nil {
			return table{}, sdk.Fail("table", "line %d of the table: %w", number, err)
		}
		region, _, _ := strings.Cut(z.Name, "/")
		t.Regions[region] = append(t.Regions[region], z)
		t.Zones++
	}
	if t.Zones == 0 {
		return table{}, sdk.Fail("table", "the table has no rows")
	}
	ctx.Log().Info("parsed", "lines", number, "zones", t.Zones, "regions", len(t.Regions))
	return t, nil
}

// parseRow reads one row: countries, coordinates, name and, where a country has
// several zones, comments, separated by tabs.
func parseRow(line string) (zone, error) {
	columns := strings.Split(line, "\t")
	if len(columns) != 3 && len(columns) != 4 {
		return zone{}, fmt.Errorf("3 or 4 columns are expected, not %d", len(columns))
	}
	z := zone{Countries: strings.Split(columns[0], ","), Name: columns[2]}
	for _, code := range z.Countries {
		if len(code) != 2 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return zone{}, fmt.Errorf("%q is not a country code", code)
		}
	}
	if region, place, _ := strings.Cut(z.Name, "/"); region == "" || place == "" {
		return zone{}, fmt.Errorf("%q is not the name of a zone: Region/Place is expected", z.Name)
	}
	var err error
	if z.Latitude, z.Longitude, err = parseCoordinates(columns[1]); err != nil {
		return zone{}, fmt.Errorf("the coordinates %q: %w", columns[1], err)
	}
	if len(columns) == 4 {
		z.Comments = columns[3]
	}
	return z, nil
}
