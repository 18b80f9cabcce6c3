package timetable

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

// ZoneNamed finds the zone of a name; UTC for an empty one.
func ZoneNamed(cmd *cobra.Command, name string) (*time.Location, error) {
	if zone, err := time.LoadLocation(name); err == nil && name != "Local" {
		return zone, nil
	}
	return nil, cli.Usage(cmd, "--timezone %q is not in the IANA time zone database%s", name, suggestZone(name))
}

// regions are the directories of the database with inhabited places.
var regions = []string{"Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"}

// suggestZone looks for a zone by its place alone, in any case: the database cannot
// be listed.
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
	return "; examples: Europe/Berlin, America/New_York, Asia/Tokyo, UTC"
}
