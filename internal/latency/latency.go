// Package latency answers how long loads took, and what remote ones cost.
//
// # Input
//
// A profile, perhaps restricted to some regions by access.Only.
//
// # Output
//
// A Histogram per key (By: object, region, level, …) with its mean, quantiles, CDF and
// the share of all latency that each range of latencies makes (what figs. 14 to 17 of
// work-time inflation show, §6.1); the latency of memory by pairs of nodes (Pairs); the
// cycles that remote loads cost beyond local ones (Costs).
//
// # Method
//
// Sums over the profile's histograms. A sample counts as the accesses that it stands
// for.
//
// # Limits
//
// Loads only: most processors have no latency of stores. Buckets are an eighth of an
// octave wide, and quantiles are interpolated in them; means and sums are exact. Latency
// is as the processor counts it: from issue, or from dispatch, to completion, waiting in
// queues included, and of loads beside each other each has its own: sums are more than
// time. Where a threshold was set (perf's ldlat), shorter loads are missing.
package latency

import (
	"math"

	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Histogram is loads by latency.
type Histogram struct {
	// Samples, Accesses and Cycles are of loads with a latency, Untimed the accesses of
	// loads without.
	Samples, Accesses, Cycles uint64
	Untimed                   uint64

	buckets []bucket // see profile.LatencyBucket; those behind the last are empty
}

type bucket struct{ accesses, cycles uint64 }

func (h *Histogram) add(l *profile.Latency) {
	if l.Bucket == 0 {
		h.Untimed += l.Accesses
		return
	}
	for len(h.buckets) <= int(l.Bucket) {
		h.buckets = append(h.buckets, bucket{})
	}
	b := &h.buckets[l.Bucket]
	b.accesses += l.Accesses
	b.cycles += l.Cycles
	h.Samples += l.Samples
	h.Accesses += l.Accesses
	h.Cycles += l.Cycles
}

// Mean is in cycles; NaN without loads.
func (h *Histogram) Mean() float64 {
	if h.Accesses == 0 {
		return math.NaN()
	}
	return float64(h.Cycles) / float64(h.Accesses)
}

// Quantile is the latency in cycles that a share q of the loads, in [0,1], does not
// exceed; NaN without loads.
func (h *Histogram) Quantile(q float64) float64 {
	want, sum := q*float64(h.Accesses), 0.0
	for i, b := range h.buckets {
		n := float64(b.accesses)
		if n > 0 && sum+n >= want {
			least, most := profile.BucketBounds(int32(i))
			return float64(least) + (want-sum)/n*float64(most-least)
		}
		sum += n
	}
	return math.NaN()
}

// Point is one of a cumulative distribution: that share of the loads, in (0,1], took at
// most so many cycles.
type Point struct {
	Cycles uint64
	Share  float64
}

// CDF is the cumulative distribution, by ascending latency; the last point has share 1.
func (h *Histogram) CDF() []Point {
	var out []Point
	sum := uint64(0)
	for i, b := range h.buckets {
		if sum += b.accesses; b.accesses > 0 {
			_, most := profile.BucketBounds(int32(i))
			out = append(out, Point{most, float64(sum) / float64(h.Accesses)})
		}
	}
	return out
}

// Range is the loads whose latency is from Least to Most cycles.
type Range struct {
	Least, Most      uint64
	Accesses, Cycles uint64
}

// Ranges is the loads by octaves of latency, 17 to 32, 33 to 64 and so on, empty ones
// left out. The share of a range in all latency is its Cycles over the histogram's:
// work-time inflation's fig. 15 takes its loads times its low end for that, for want of
// the sum.
func (h *Histogram) Ranges() []Range {
	var out []Range
	for i, b := range h.buckets {
		if b.accesses == 0 {
			continue
		}
		_, most := profile.BucketBounds(int32(i))
		r := octave(most)
		if n := len(out); n > 0 && out[n-1].Most == r.Most {
			r = out[n-1]
			out = out[:n-1]
		}
		r.Accesses += b.accesses
		r.Cycles += b.cycles
		out = append(out, r)
	}
	return out
}

// octave is the range that a latency is in.
func octave(cycles uint64) Range {
	r := Range{Least: 1, Most: 1}
	for r.Most < cycles {
		r.Least, r.Most = r.Most+1, 2*r.Most
		if r.Most == 0 {
			r.Most = math.MaxUint64
		}
	}
	return r
}

// By adds up the loads of p by key: the result has n entries, key(l) says which one l
// belongs to, and what has a negative key is left out.
func By(p *profile.Profile, n int, key func(l *profile.Latency) int) []Histogram {
	out := make([]Histogram, n)
	for i := range p.Latencies {
		if k := key(&p.Latencies[i]); k >= 0 {
			out[k].add(&p.Latencies[i])
		}
	}
	return out
}

// Total is the histogram of the whole profile.
func Total(p *profile.Profile) Histogram {
	return By(p, 1, func(*profile.Latency) int { return 0 })[0]
}

// Pairs is loads served by memory, by who loaded and where the memory is: Of[i*Nodes+j]
// is loads by threads of node i from memory of node j, where j is i from its DRAM alone.
// Loads whose node is not known are left out, and those of which address and processor
// say different things.
type Pairs struct {
	Nodes int
	Of    []Histogram
}

// At is the loads by node i from node j.
func (p *Pairs) At(i, j int) *Histogram { return &p.Of[i*p.Nodes+j] }

// FindPairs returns the pairs of p.
func FindPairs(p *profile.Profile) Pairs { return findPairs(p, profile.Served.Memory) }

// findPairs is that of the loads that memory of one kind served.
func findPairs(p *profile.Profile, kind func(profile.Served) bool) Pairs {
	n := len(p.Run.Topology.Nodes)
	return Pairs{n, By(p, n*n, func(l *profile.Latency) int {
		local := l.From == l.To
		switch {
		case !kind(l.Served), l.To == topo.Unknown:
			return -1
		case local != (l.Served == profile.ServedLocalDRAM):
			return -1
		}
		return int(l.From)*n + int(l.To)
	})}
}

// Enough is how many samples the mean latency of a pair of nodes takes to be told apart
// from another's: latencies of memory scatter by about their mean, so that of 100 is
// right within a fifth in 19 of 20 cases.
const Enough = 100

// local is the mean latency of node i's own memory; that of all nodes' own where i has
// too few samples, and NaN where there are none at all.
func (p *Pairs) local(i int) float64 {
	if own := p.At(i, i); own.Samples >= Enough {
		return own.Mean()
	}
	var accesses, cycles uint64
	for k := range p.Nodes {
		accesses += p.At(k, k).Accesses
		cycles += p.At(k, k).Cycles
	}
	return float64(cycles) / float64(accesses)
}

// Ratios is how much longer a load from another node's memory takes than one from the
// own: [i*nodes+j] is the mean latency from i to j over that from i to i, of DRAM; of
// other memory only to a node from which no DRAM was loaded. It is nil where a pair of a
// node with CPUs and one with memory has fewer than Enough samples.
func Ratios(p *profile.Profile) []float64 {
	pairs, nodes := findPairs(p, dram), p.Run.Topology.Nodes
	for i, all := range FindPairs(p).Of {
		if pairs.Of[i].Samples == 0 {
			pairs.Of[i] = all
		}
	}
	out := make([]float64, len(pairs.Of))
	for i := range nodes {
		for j := range nodes {
			if len(nodes[i].CPUs) == 0 || nodes[j].NoMemory {
				continue
			}
			if pairs.At(i, j).Samples < Enough || pairs.At(i, i).Samples < Enough {
				return nil
			}
			out[i*pairs.Nodes+j] = pairs.At(i, j).Mean() / pairs.At(i, i).Mean()
		}
	}
	return out
}

func dram(s profile.Served) bool {
	return s == profile.ServedLocalDRAM || s == profile.ServedRemoteDRAM
}

// Remote reports whether a load was served by another node: its memory or its cache.
func Remote(l *profile.Latency) bool {
	switch l.Served {
	case profile.ServedRemoteDRAM, profile.ServedRemoteCache, profile.ServedRemoteHITM:
		return true
	case profile.ServedPMEM, profile.ServedCXL:
		return l.To != topo.Unknown && l.To != l.From
	}
	return false
}

// Costs is what remote loads cost, by key as in By: the cycles that they took beyond as
// many loads of the mean latency of the thread's own memory, at least 0. nil where the
// profile has no loads from local memory to compare with.
//
// Note: counting only the loads that took longer than that mean makes a cost of the mere
// scatter of latencies.
func Costs(p *profile.Profile, n int, key func(l *profile.Latency) int) []uint64 {
	pairs := FindPairs(p)
	beyond := make([]float64, n)
	for i := range p.Latencies {
		l := &p.Latencies[i]
		k := key(l)
		if k < 0 || l.Bucket == 0 || !Remote(l) {
			continue
		}
		local := pairs.local(int(l.From))
		if math.IsNaN(local) {
			return nil
		}
		beyond[k] += float64(l.Cycles) - local*float64(l.Accesses)
	}
	out := make([]uint64, n)
	for k, cycles := range beyond {
		out[k] = uint64(max(0, math.Round(cycles)))
	}
	return out
}
