package main

import (
	"cmp"
	"slices"

	"github.com/flowhost/flowhost/sdk"
)

type selection struct {
	Region string `json:"region"`
	Zones  []zone `json:"zones"`
}

// summary is what is known of the zones of a region.
type summary struct {
	Region    string   `json:"region"`
	Zones     int      `json:"zones"`
	Commented int      `json:"commented"` // zones with comments
	Countries []string `json:"countries"` // codes, sorted, each once
	Extremes  extremes `json:"extremes"`
}

// extremes are the outermost zones by their principal places; among equals the
// one whose name sorts first.
type extremes struct {
	North place `json:"north"`
	South place `json:"south"`
	East  place `json:"east"`
	West  place `json:"west"`
}

type place struct {
	Zone      string `json:"zone"`
	Latitude  angle  `json:"latitude"` // arc seconds
	Longitude angle  `json:"longitude"`
}

func region(ctx sdk.Context, in selection) (summary, error) {
	if len(in.Zones) == 0 {
		return summary{}, sdk.Fail("no_zones", "region %q has no zones", in.Region)
	}
	s := summary{Region: in.Region, Zones: len(in.Zones)}
	places := make([]place, len(in.Zones))
	for i, z := range in.Zones {
		places[i] = place{z.Name, z.Latitude, z.Longitude}
		s.Countries = append(s.Countries, z.Countries...)
		if z.Comments != "" {
			s.Commented++
		}
	}
	slices.Sort(s.Countries)
	s.Countries = slices.Compact(s.Countries)
	s.Extremes = outermost(places)
	ctx.Log().Info("summed up", "region", s.Region, "zones", s.Zones, "countries", len(s.Countries))
	return s, nil
}

// outermost needs at least one place.
func outermost(places []place) extremes {
	latitude := func(p place) angle { return p.Latitude }
	longitude := func(p place) angle { return p.Longitude }
	return extremes{
		North: first(places, latitude, -1),
		South: first(places, latitude, 1),
		East:  first(places, longitude, -1),
		West:  first(places, longitude, 1),
	}
}

// first is the place that a sort by key, times the sign, and by name would put
// first.
func first(places []place, key func(place) angle, sign angle) place {
	return slices.MinFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(sign*key(a), sign*key(b)), cmp.Compare(a.Zone, b.Zone))
	})
}
