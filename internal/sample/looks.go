package sample

import (
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// looks is page faults after the first touch by time, in bins of 1<<binShift ns.
//
// The kernel takes all pages of a process away at once to see who comes for them: that is
// one look. Who runs in the moments after it comes for many, so that the faults of a
// look tell less than as many that are independent.
type looks map[uint64]look

// look is how many faults there were, and how many of them remote.
type look struct{ all, remote int }

const binShift = 20 // a millisecond: shorter than any look

func (l looks) add(time uint64, all, remote int) {
	b := l[time>>binShift]
	l[time>>binShift] = look{b.all + all, b.remote + remote}
}

func (l looks) addAll(other looks) {
	for bin, b := range other {
		l.add(bin<<binShift, b.all, b.remote)
	}
}

func (l looks) all() (n int) {
	for _, b := range l {
		n += b.all
	}
	return n
}

// divided is n parts of about as many faults, one after the other.
func (l looks) divided(n int) []look {
	all := l.all()
	parts := make([]look, n)
	before := 0
	for _, bin := range slices.Sorted(maps.Keys(l)) {
		b := l[bin]
		p := &parts[max(0, min(n-1, (before+b.all/2)*n/max(1, all)))]
		p.all += b.all
		p.remote += b.remote
		before += b.all
	}
	return slices.DeleteFunc(parts, func(p look) bool { return p.all <= 0 })
}

// period is how many faults tell as much of the remote share as one that was drawn at
// random: the design effect of n looks, each a cluster, with Student's factor for their number
// (Kish, Survey Sampling, 1965, §6.4, §8.2). 0 of less than two looks, of which nothing can be told.
func (l looks) period(n int) float64 {
	parts := l.divided(max(1, n))
	k := float64(len(parts))
	if k < 2 {
		return 0
	}
	var all, remote, squares float64
	for _, p := range parts {
		all += float64(p.all)
		remote += float64(p.remote)
	}
	share := remote / all
	for _, p := range parts {
		d := float64(p.remote) - share*float64(p.all)
		squares += d * d
	}
	if share <= 0 || share >= 1 {
		return all / k
	}
	t := distuv.StudentsT{Sigma: 1, Nu: k - 1}.Quantile(0.975) / distuv.UnitNormal.Quantile(0.975)
	return max(1, t*t*k/(k-1)*squares/(all*share*(1-share)))
}
