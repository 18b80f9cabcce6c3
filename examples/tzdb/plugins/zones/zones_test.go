package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

// rowPattern reads the table in another way than the plugin does.
var rowPattern = regexp.MustCompile(`^([A-Z,]+)\t([+-])(\d\d)(\d\d)(\d\d)?([+-])(\d\d\d)(\d\d)(\d\d)?\t((\w+)/[^\t]+)\t?(.*)$`)

// expected recomputes a region's summary from the file's text; the region "" is
// the whole table.
func expected(t *testing.T, file, region string) summary {
	t.Helper()
	s := summary{Region: region}
	countries := map[string]bool{}
	var places []place
	lines := bufio.NewScanner(strings.NewReader(file))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		m := rowPattern.FindStringSubmatch(lines.Text())
		if m == nil {
			t.Fatalf("row %q", lines.Text())
		}
		if region != "" && m[11] != region {
			continue
		}
		s.Zones++
		if m[12] != "" {
			s.Commented++
		}
		for code := range strings.SplitSeq(m[1], ",") {
			countries[code] = true
		}
		places = append(places, place{m[10], seconds(m[2:6]), seconds(m[6:10])})
	}
	for code := range countries {
		s.Countries = append(s.Countries, code)
	}
	sort.Strings(s.Countries)
	s.Extremes.North = sorted(places, func(a, b place) bool { return a.Latitude > b.Latitude })
	s.Extremes.South = sorted(places, func(a, b place) bool { return a.Latitude < b.Latitude })
	s.Extremes.East = sorted(places, func(a, b place) bool { return a.Longitude > b.Longitude })
	s.Extremes.West = sorted(places, func(a, b place) bool { return a.Longitude < b.Longitude })
	return s
}

// sorted gives the first place after sorting by name, then by less.
func sorted(places []place, less func(a, b place) bool) place {
	sort.Slice(places, func(i, j int) bool { return places[i].Zone < places[j].Zone })
	sort.SliceStable(places, func(i, j int) bool { return less(places[i], places[j]) })
	return places[0]
}

func seconds(groups []string) angle {
	total := 0
	for i, unit := range []int{3600, 60, 1} {
		n, _ := strconv.Atoi(groups[1+i]) // seconds may be absent: 0
		total += n * unit
	}
	if groups[0] == "-" {
		total = -total
	}
	return angle(total)
}

func readTable(t *testing.T) string {
	t.Helper()
	file, err := os.ReadFile("../../zone1970.tab")
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

// must gives the value of a call that has to succeed.
func must[Out any](t *testing.T, got sdktest.Result[Out]) Out {
	t.Helper()
	if got.Failure != nil {
		t.Fatal(got.Failure)
	}
	return got.Value
}

// TestTable runs the functions as the flow does, on the real table.
func TestTable(t *testing.T) {
	t.Parallel()
	file := readTable(t)
	parsed := must(t, sdktest.Call(t.Context(), parse, source{file}, sdktest.Options{}))
	in := parts{Zones: parsed.Zones}
	for name, zones := range parsed.Regions {
		got := must(t, sdktest.Call(t.Context(), region, selection{name, zones}, sdktest.Options{}))
		if diff := cmp.Diff(expected(t, file, name), got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		in.Regions = append(in.Regions, got)
	}
	got := must(t, sdktest.Call(t.Context(), report, in, sdktest.Options{}))
	world := expected(t, file, "")
	want := row{
		Region: "World", Zones: world.Zones, Countries: len(world.Countries),
		Commented: world.Commented, CommentedPercent: got.Totals.CommentedPercent, Extremes: world.Extremes,
	}
	if diff := cmp.Diff(want, got.Totals); diff != "" {
		t.Error(diff)
	}
	if share := fmt.Sprintf("%.1f", 100*float64(world.Commented)/float64(world.Zones)); share != fmt.Sprint(got.Totals.CommentedPercent) {
		t.Errorf("%v percent with comments, want %s", got.Totals.CommentedPercent, share)
	}
	checkFigures(t, got)
}

// checkFigures compares with what the awk commands of the README print.
func checkFigures(t *testing.T, got result) {
	t.Helper()
	figures := make([]string, 0, len(got.Regions)+1)
	for _, r := range append(got.Regions, got.Totals) {
		figures = append(figures, fmt.Sprint(r.Region, " ", r.Zones, " ", r.Countries, " ", r.Commented))
	}
	want := []string{
		"America 121 53 98", "Asia 74 57 46", "Europe 38 50 14", "Pacific 30 29 17", "Africa 19 56 3",
		"Australia 11 1 11", "Antarctica 8 2 8", "Atlantic 8 7 3", "Indian 3 4 1", "World 312 247 201",
	}
	if diff := cmp.Diff(want, figures); diff != "" {
		t.Error(diff)
	}
	last := "| World | 312 | 247 | 64.4 % | Danmarkshavn 76°46′N | Vostok 78°24′S | Fiji 178°25′E | Adak 176°39′29″W |\n"
	if !strings.HasSuffix(got.Markdown, last) || strings.Count(got.Markdown, "\n") != 16 {
		t.Errorf("Markdown:\n%s", got.Markdown)
	}
}

// TestFlowCoversTheTable holds that the flow has a task for each region that
// the table has.
func TestFlowCoversTheTable(t *testing.T) {
	t.Parallel()
	flow, err := os.ReadFile("../../tzdb.hcl")
	if err != nil {
		t.Fatal(err)
	}
	parsed := must(t, sdktest.Call(t.Context(), parse, source{readTable(t)}, sdktest.Options{}))
	for name := range parsed.Regions {
		for _, text := range []string{"task.parse.output.regions." + name, "task." + strings.ToLower(name) + ".output,"} {
			if !strings.Contains(string(flow), text) {
				t.Errorf("the flow does not refer to %s", text)
			}
		}
	}
}

func TestParseFailures(t *testing.T) {
	t.Parallel()
	for text, message := range map[string]string{
		"":                                      "the table has no rows",
		"# a\n\n#b":                             "the table has no rows",
		"# a\nAD":                               "line 2 of the table: 3 or 4 columns are expected, not 1",
		"ad\t+4230+00131\tEurope/Andorra":       `line 1 of the table: "ad" is not a country code`,
		"AD,\t+4230+00131\tEurope/Andorra":      `line 1 of the table: "" is not a country code`,
		"AD\t+4230+00131\tAndorra":              `line 1 of the table: "Andorra" is not the name of a zone: Region/Place is expected`,
		"AD\t+4230+0131\tEurope/Andorra":        `line 1 of the table: the coordinates "+4230+0131": ±DDMM±DDDMM or ±DDMMSS±DDDMMSS is expected`,
		"AD\t+4230+00131\tEurope/Andorra\tc\td": "line 1 of the table: 3 or 4 columns are expected, not 5",
	} {
		got := sdktest.Call(t.Context(), parse, source{text}, sdktest.Options{})
		if got.Failure == nil || got.Failure.Message != message || got.Failure.Code != "table" || got.Failure.Retryable {
			t.Errorf("%q gave %+v", text, got.Failure)
		}
	}
}

func TestParseKeepsRows(t *testing.T) {
	t.Parallel()
	got := must(t, sdktest.Call(t.Context(), parse, source{"# comment\r\nNO,AQ\t-720041+0023206\tAntarctica/Troll\tTroll, \"x\"\r\n"}, sdktest.Options{}))
	want := table{Zones: 1, Regions: map[string][]zone{"Antarctica": {{
		Name: "Antarctica/Troll", Countries: []string{"NO", "AQ"}, Latitude: -(72*3600 + 41), Longitude: 2*3600 + 32*60 + 6, Comments: `Troll, "x"`,
	}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCoordinates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]angle{
		"+0000+00000":     {0, 0},
		"-0030-00030":     {-1800, -1800},
		"+900000-1800000": {324000, -648000},
		"-720041+0023206": {-259241, 9126},
	} {
		latitude, longitude, err := parseCoordinates(text)
		if err != nil || latitude != want[0] || longitude != want[1] {
			t.Errorf("%s gave %d %d %v", text, latitude, longitude, err)
		}
	}
	for _, text := range []string{
		"", "+", "4230+00131", "+4230", "+4230+001310", "+42300+00131", "+423000+00131", "+4x30+00131", "+4230+001 1",
		"+9001+00000", "+0000+18001", "+4260+00131", "+423060+0013100", "+42²+00131", "+4230+00131+00000",
	} {
		if latitude, longitude, err := parseCoordinates(text); err == nil {
			t.Errorf("%q gave %d %d", text, latitude, longitude)
		}
	}
}

// FuzzCoordinates holds that what is taken has the form of the table and lies
// on the globe.
func FuzzCoordinates(f *testing.F) {
	for _, seed := range []string{"+4230+00131", "-720041+0023206", "+9000+18000", "+-", ""} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`^[+-](\d{4}[+-]\d{5}|\d{6}[+-]\d{7})$`)
	f.Fuzz(func(t *testing.T, text string) {
		latitude, longitude, err := parseCoordinates(text)
		if err != nil {
			return
		}
		if !form.MatchString(text) || max(latitude, -latitude) > 90*arcDegree || max(longitude, -longitude) > 180*arcDegree {
			t.Errorf("%q gave %d %d", text, latitude, longitude)
		}
	})
}

func TestAngleFormat(t *testing.T) {
	t.Parallel()
	for a, want := range map[angle]string{0: "0°00′N", 276360: "76°46′N", -259241: "72°00′41″S", -1: "0°00′01″S"} {
		if got := a.format("NS"); got != want {
			t.Errorf("%d is written %s, want %s", a, got, want)
		}
	}
}

func TestExtremesOfEquals(t *testing.T) {
	t.Parallel()
	zones := []zone{{Name: "A/b"}, {Name: "A/a"}, {Name: "A/c"}}
	got := must(t, sdktest.Call(t.Context(), region, selection{"A", zones}, sdktest.Options{}))
	first := place{Zone: "A/a"}
	if got.Extremes != (extremes{first, first, first, first}) {
		t.Errorf("got %+v", got.Extremes)
	}
}

func TestIncomplete(t *testing.T) {
	t.Parallel()
	tests := map[string]run.Result{
		`no_zones: region "Arctic" has no zones`:        sdktest.Call(t.Context(), region, selection{Region: "Arctic"}, sdktest.Options{}).Result,
		"incomplete: there are no regions to report on": sdktest.Call(t.Context(), report, parts{}, sdktest.Options{}).Result,
		"incomplete: the regions have 2 of the table's 3 zones: a region is missing in the flow": sdktest.Call(t.Context(),
			report, parts{Zones: 3, Regions: []summary{{Region: "A", Zones: 2}}}, sdktest.Options{}).Result,
	}
	for want, got := range tests {
		if got.Failure == nil || got.Failure.Error() != want {
			t.Errorf("got %v, want %s", got.Failure, want)
		}
	}
}
