package timetable

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

// ZoneNamed finds the zone of that name; UTC when there is none.
func ZoneNamed(cmd *cobra.Command, name string) (*time.Location, error) {
	if zone, err := time.LoadLocation(name); err == nil && name != "Local" {
		return zone, nil
	}
	return nil, cli.Usage(cmd, "--timezone %q is no name of the IANA time zone database%s", name, suggestZone(name))
}

// regions are the folders of the database with places people live in.
var regions = []string{"Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"}

// suggestZone looks for a zone by its place alone, and in other letters: the
// database cannot be listed.
func suggestZone(name string) string {
	place := name[strings.LastIndex(name, "/")+1:]
	words := strings.FieldsFunc(strings.ToLower(place), func(r rune) bool { return r == ' ' || r == '_' })
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	place = strings.Join(words, "_")
	for _, region := range regions {
		if _, err := time.LoadLocation(region + "/" + place); err == nil && place != "" {
			return "; did you mean \"" + region + "/" + place + "\"?"
		}
	}
	return "; there are Europe/Berlin, America/New_York, Asia/Tokyo, UTC and hundreds of others"
}
