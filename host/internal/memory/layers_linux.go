package memory

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
)

// An image may be over another one: a few runs of pages, in a file of their own, that are
// mapped over the file of the other. There are never more than two files, however many
// images an image came from: its runs are all that differs from the lowest one.

const (
	// maxRuns is how many runs of an image are over another one. Pages between them are
	// written once more, if there would be too many. Each makes a memory 3 µs dearer,
	// and restoring it 0.2, until the image is flat.
	maxRuns = 128

	// maxMappings is how many mappings memories may take for that. The kernel gives a
	// process 65 530 in all (vm.max_map_count), and Go's runtime ends when it gets none.
	maxMappings = 32 << 10
)

// mappings is how many of maxMappings are taken.
var mappings atomic.Int64

// freezeOver makes an image over the one that the memory is based on. It gives nil where
// that is not possible, or would share less than half of that one.
func (r *region) freezeOver(ctx context.Context, size int, below *Image) (*Image, error) {
	if below == nil || !below.Shared() || below.pagemap < 0 || below.size == 0 || below.size%os.Getpagesize() != 0 {
		return nil, nil
	}
	changed, err := r.changes(ctx, size, below)
	if err != nil {
		return nil, err
	}
	lowest, runs := below.layers[0], slices.Clone(changed)
	for _, l := range below.layers[1:] {
		runs = append(runs, l.extent)
	}
	if size > lowest.end {
		runs = append(runs, extent{start: lowest.end, end: size})
	}
	runs = join(runs, maxRuns)
	extents := without(below.extents, runs)
	if 2*total(extents) < total(below.extents) {
		return nil, nil
	}
	layers := []layer{lowest}
	if len(runs) > 0 {
		own, err := r.content(ctx, below.size, runs, changed)
		if err != nil {
			return nil, err
		}
		top, err := writeFile(ctx, size, own)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			layers = append(layers, layer{run, top})
		}
		extents = append(extents, own...)
		slices.SortFunc(extents, func(a, b extent) int { return a.start - b.start })
	}
	image := r.image(size, extents, layers)
	if way, timings := below.Way(); way != WayCopy || size <= mostCopied {
		if timings != nil { // measuring takes longer than all of this
			image.choice.Store(&timings)
		}
	}
	return image, nil
}

// changes finds the pages that are others than those of the image.
func (r *region) changes(ctx context.Context, size int, image *Image) (changed []extent, err error) {
	page, looked := os.Getpagesize(), 0
	scanned := r.eachPrivate(image.pagemap, size, func(start, end int) bool {
		for at := start; at < end; at += page {
			if looked += page; looked%chunk == 0 && ctx.Err() != nil {
				err = context.Cause(ctx)
				return false
			}
			e := extent{start: at, end: min(at+page, end)}
			switch last := len(changed) - 1; {
			case !image.differs(r.all, e):
			case last >= 0 && changed[last].end == at:
				changed[last].end = e.end
			default:
				changed = append(changed, e)
			}
		}
		return true
	})
	r.complete = false // what is found is not restored
	if err == nil {
		err = scanned
	}
	return changed, err
}

// content finds the pages in runs that are not zero. Of what is beyond an image's size
// only the changed ones can be others.
func (r *region) content(ctx context.Context, size int, runs, changed []extent) ([]extent, error) {
	var content []extent
	find := func(within extent) error {
		found, err := extentsOf(ctx, r.all, within)
		content = append(content, found...)
		return err
	}
	for _, run := range runs {
		if err := find(run.clip(0, size)); err != nil {
			return nil, err
		}
	}
	for _, e := range changed {
		if err := find(e.clip(size, e.end)); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// mappable gives layers for one more memory, and how many mappings are taken for that.
func (i *Image) mappable(ctx context.Context) (layers []layer, taken int64, err error) {
	if taken = 2 * int64(max(len(i.layers)-1, 0)); taken == 0 { // each makes two mappings out of one
		return i.layers, 0, nil
	}
	if i.flat.file.Load() == nil {
		if mappings.Add(taken) <= maxMappings {
			return i.layers, taken, nil
		}
		mappings.Add(-taken)
		if err := i.Flatten(ctx); err != nil {
			return nil, 0, err
		}
	}
	return i.flattened(), 0, nil
}

// flattened is the layers of a flat image.
func (i *Image) flattened() []layer {
	return []layer{{extent{end: i.size}, i.flat.file.Load()}}
}

// Flatten writes an image that is over another one as a whole. Its memories are faster
// then, from their next reset on, and further ones from the beginning. It fails with the
// cause with which ctx ended.
func (i *Image) Flatten(ctx context.Context) error {
	i.flat.mu.Lock()
	defer i.flat.mu.Unlock()
	if len(i.layers) < 2 || i.flat.file.Load() != nil {
		return nil
	}
	all, err := writeFile(ctx, i.size, slices.Clone(i.extents))
	if err != nil {
		return err
	}
	all.images.Add(1)
	i.flat.file.Store(all)
	return nil
}
