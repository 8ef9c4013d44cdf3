package pattern

import (
	"slices"

	"numaopt/internal/units"
)

// Want is what one loop wants of an object.
type Want struct {
	Result
	Accesses uint64
	// First and Last are the first and the last page that the loop touches.
	First, Last int
}

// conflictShare is the share of the accesses, in [0,1], from which on it is a
// conflict that no placement suits all loops: half of what two loops of equal
// weight lose on 2 nodes where one of ten agrees.
const conflictShare = 0.05

// Conflict is how far the patterns of an object's loops contradict each other.
type Conflict struct {
	// Apart is the share of the accesses, in [0,1], that would stay remote if each
	// loop had the object placed as it wants; Together with one placement for all
	// loops, each page where most accesses to it come from.
	Apart, Together float64
}

// Is reports whether one placement costs clearly more than one for each loop.
func (c Conflict) Is() bool { return c.Together-c.Apart > conflictShare }

// FindConflict weighs the patterns of one object's loops against each other. Loops
// that do not divide the object want nothing and are left out. The accesses of a
// loop are taken to be even over the pages from its first to its last, so that few
// samples give the same answer as many.
func FindConflict(wants []Want, nodes, head int, bytes int64) Conflict {
	wants = slices.DeleteFunc(slices.Clone(wants), func(w Want) bool { return !w.Divides() || w.Accesses == 0 })
	var apart, together, all float64
	pages := units.Bytes(bytes + int64(head)).Pages()
	for page := range pages {
		lo := max(0, int64(page)*units.PageSize-int64(head))
		hi := min(bytes, int64(page+1)*units.PageSize-int64(head))
		sum := make([]float64, nodes)
		for i := range wants {
			w := &wants[i]
			if page < w.First || page > w.Last {
				continue
			}
			weight := float64(w.Accesses) / float64(w.Last-w.First+1)
			share := w.shares(nodes, lo, hi)
			for n, s := range share {
				sum[n] += weight * s
			}
			apart += weight * (1 - slices.Max(share))
			all += weight
		}
		together -= slices.Max(sum)
		for _, s := range sum {
			together += s
		}
	}
	if all == 0 {
		return Conflict{}
	}
	return Conflict{apart / all, together / all}
}

// shares is each node's part in the accesses to the bytes [lo, hi).
func (r *Result) shares(nodes int, lo, hi int64) []float64 {
	share := make([]float64, nodes)
	if r.Kind == Single {
		share[r.Node] = 1
		return share
	}
	var all float64
	r.fit.owners(lo, hi, func(node int, bytes int64) {
		share[node] += float64(bytes)
		all += float64(bytes)
	})
	for n := range share {
		share[n] /= max(all, 1)
	}
	return share
}
