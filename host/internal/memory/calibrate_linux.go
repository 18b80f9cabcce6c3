package memory

import (
	"bytes"
	"os"
	"slices"
	"time"
)

// calibrate is the first reset to an image. It undoes what the call wrote, then
// writes to the same pages again and again to find out which way is the fastest
// for them, the page faults that it leads to included.
func (r *region) calibrate(image *Image) error {
	pages := r.pagesWritten(image)
	if err := r.drop(image); err != nil {
		return err
	}
	ways := []Way{WayScan, WayDrop, WayCopy}
	if image.pagemap < 0 {
		ways = ways[1:]
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

// pagesWritten is where the pages begin that differ from the image, or one that
// does not when there are none.
func (r *region) pagesWritten(image *Image) []int {
	const most = 4096
	page := os.Getpagesize()
	var pages []int
	for at := 0; at < image.size && len(pages) < most; at += page {
		end := min(at+page, image.size)
		if zero, _ := image.zeros(at); zero {
			if len(bytes.TrimLeft(r.all[at:end], "\x00")) > 0 {
				pages = append(pages, at)
			}
		} else if !bytes.Equal(r.all[at:end], image.bytes[at:end]) {
			pages = append(pages, at)
		}
	}
	if len(pages) == 0 {
		pages = append(pages, 0)
	}
	return pages
}
