package memory

import (
	"os"
	"slices"
	"time"
)

// mostCopied is the bytes of the largest image that is copied as a whole.
const mostCopied = 8 << 20

// calibrate is the first reset to an image. It undoes what the call wrote, then
// writes to the same pages again and again to find out which way is the fastest
// for them, the page faults that it leads to included. A large image is never copied
// as a whole.
func (r *region) calibrate(image *Image) error {
	pages := r.pagesWritten(image)
	if err := r.drop(image); err != nil {
		return err
	}
	ways := []Way{WayDrop}
	if image.pagemap >= 0 {
		ways = []Way{WayScan, WayDrop}
		if countsFaults() {
			ways = append(ways, WayWatch)
		}
	}
	if image.size <= mostCopied {
		ways = append(ways, WayCopy)
	}
	var timings []Timing
	for _, way := range ways {
		cost, err := r.measure(way, image, pages)
		if err != nil {
			return err
		}
		timings = append(timings, Timing{way, cost})
	}
	slices.SortStableFunc(timings, func(a, b Timing) int { return int(a.Cost - b.Cost) })
	image.choice.CompareAndSwap(nil, &timings) // another memory may have been faster
	return r.drop(image)
}

// measure gives the median of a few rounds of writing and going back.
func (r *region) measure(way Way, image *Image, pages []int) (time.Duration, error) {
	var costs [7]time.Duration
	for round := range len(costs) + 1 { // the first one is the memory's, not the way's
		started := time.Now()
		if way == WayWatch {
			r.beginWatch()
		}
		for _, at := range pages {
			r.all[at] ^= 0xff
		}
		if err := r.resetBy(way, image); err != nil {
			return 0, err
		}
		if round > 0 {
			costs[round-1] = time.Since(started)
		}
	}
	slices.Sort(costs[:])
	return costs[len(costs)/2], nil
}

// pagesWritten is where pages begin that differ from the image, or one that does not
// when there are none. Of a large image it reads a sample, so that a call that
// writes to all of its memory does not keep its place for long.
func (r *region) pagesWritten(image *Image) []int {
	const most, looks = 1024, 16 << 10
	page := os.Getpagesize()
	step := max(image.size/page/looks, 1) * page
	var pages []int
	for at := 0; at < image.size && len(pages) < most; at += step {
		end := min(at+page, image.size)
		if image.differs(r.all, extent{start: at, end: end}) {
			pages = append(pages, at)
		}
	}
	if len(pages) == 0 {
		pages = append(pages, 0)
	}
	return pages
}
