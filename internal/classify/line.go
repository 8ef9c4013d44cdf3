package classify

import (
	"cmp"
	"slices"

	"numaopt/internal/profile"
)

// LineSharing is how nodes share a cache line.
type LineSharing string

// The ways. False sharing is of data that nobody shares, but for the line that it lies
// in: it goes away with another layout, true sharing with another algorithm.
const (
	TrueSharing    LineSharing = "true"  // a byte that one node writes another uses
	FalseSharing   LineSharing = "false" // what one node writes no other uses
	UnclearSharing LineSharing = "?"     // the writer has no sample, or there are too few to say false
)

// Line is a cache line that several nodes share.
type Line struct {
	Object  int   // index in the profile's objects
	Offset  int64 // as profile.LineUse has it
	Nodes   []int // that take part, ascending
	Sharing LineSharing
	// Loads, Stores and HITM are samples. Elsewhere is the samples of all nodes but
	// the one with the most: what it takes from the others, and they from it; or HITM
	// where that is more.
	Loads, Stores, HITM, Elsewhere uint64
	Parties                        []profile.LineUse // those with most samples first
}

// sharingSamples is how many samples each node of a line must have for its sharing to be
// called false: what no sample shows may yet happen, true sharing shows in two.
const sharingSamples = 10

// Lines returns the cache lines of p that nodes share, the most contended first: by the
// samples elsewhere. Stores of several nodes weigh as much as hits of what another
// core's cache had: processors that sample no loads, or do not say HITM, have lines too.
//
// Accesses are known by the byte where they begin, so that a wide one that reaches into
// what another node writes is not seen: some false sharing may be true.
func Lines(p *profile.Profile) []Line {
	var list []Line
	for rest := p.Lines; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Object == rest[0].Object && rest[n].Offset == rest[0].Offset {
			n++
		}
		list = append(list, newLine(rest[:n]))
		rest = rest[n:]
	}
	slices.SortStableFunc(list, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Elsewhere, a.Elsewhere), cmp.Compare(b.HITM, a.HITM), cmp.Compare(b.Loads+b.Stores, a.Loads+a.Stores))
	})
	return list
}

// newLine is the line of all its parties.
func newLine(parties []profile.LineUse) Line {
	l := Line{Object: int(parties[0].Object), Offset: parties[0].Offset, Parties: slices.Clone(parties)}
	samples := func(u *profile.LineUse) uint64 { return u.Loads + u.Stores }
	var most uint64
	least := ^uint64(0)
	for rest := parties; len(rest) > 0; {
		var byNode uint64
		n := 0
		for ; n < len(rest) && rest[n].Node == rest[0].Node; n++ {
			u := &rest[n]
			byNode += samples(u)
			l.Loads, l.Stores, l.HITM = l.Loads+u.Loads, l.Stores+u.Stores, l.HITM+u.HITM
		}
		l.Nodes = append(l.Nodes, int(rest[0].Node))
		most, least = max(most, byNode), min(least, byNode)
		rest = rest[n:]
	}
	l.Elsewhere = max(l.Loads+l.Stores-most, l.HITM)
	if l.Sharing = sharing(parties); l.Sharing == FalseSharing && least < sharingSamples {
		l.Sharing = UnclearSharing
	}
	slices.SortStableFunc(l.Parties, func(a, b profile.LineUse) int { return cmp.Compare(samples(&b), samples(&a)) })
	return l
}

func sharing(parties []profile.LineUse) LineSharing {
	out := UnclearSharing
	for i := range parties {
		for k := range parties {
			a, b := &parties[i], &parties[k]
			switch {
			case a.Node == b.Node || a.Written == 0:
			case a.Written&(b.Written|b.Read) != 0:
				return TrueSharing
			default:
				out = FalseSharing
			}
		}
	}
	return out
}
