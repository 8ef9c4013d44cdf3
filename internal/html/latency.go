package html

import (
	"cmp"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/profile"
)

const (
	// mostTimed is how many objects, and how many loops, the latencies can be filtered
	// by; mostTimes how many cells of their histograms there are. What has least cycles
	// is put together as the others.
	mostTimed = 40
	mostTimes = 20_000
)

// latencyData is the histograms of loads, for filters to add up.
type latencyData struct {
	Objects []string `json:"objects"` // the last is all others
	Loops   []string `json:"loops"`   // the last is all others
	Levels  []string `json:"levels"`
	// Bounds is by bucket the latency in cycles that its loads do not exceed.
	Bounds []uint64 `json:"bounds"`
	// Cells is object, loop, level, bucket, accesses, cycles.
	Cells [][6]num `json:"cells"`
}

// timed is a key of the histograms.
type timed struct{ object, loop, level, bucket int }

type times struct{ accesses, cycles uint64 }

// latencies is nil where the profile has none.
func latencies(p *profile.Profile) *latencyData {
	if len(p.Latencies) == 0 {
		return nil
	}
	groups, of := access.Groups(p)
	object := ranked(p, len(groups), func(l *profile.Latency) int { return of[l.Object] })
	loop := ranked(p, len(p.Regions), func(l *profile.Latency) int { return int(l.Region) })
	d := &latencyData{Cells: [][6]num{}}
	for _, g := range object.list {
		d.Objects = append(d.Objects, middle(groups[g].Name, longName))
	}
	for _, r := range loop.list {
		d.Loops = append(d.Loops, middle(regionName(p, r), longName))
	}
	d.Objects, d.Loops = append(d.Objects, "all others"), append(d.Loops, "all others")
	for s := range profile.NumServed {
		d.Levels = append(d.Levels, profile.Served(s).String())
	}
	for b := range int32(profile.Buckets) {
		_, most := profile.BucketBounds(b)
		if most > 1<<40 {
			break // nothing takes so long
		}
		d.Bounds = append(d.Bounds, most)
	}
	sums := make(map[timed]times)
	for i := range p.Latencies {
		l := &p.Latencies[i]
		if l.Bucket == 0 || int(l.Bucket) >= len(d.Bounds) {
			continue
		}
		k := timed{object.at(of[l.Object]), loop.at(int(l.Region)), int(l.Served), int(l.Bucket)}
		sums[k] = times{sums[k].accesses + l.Accesses, sums[k].cycles + l.Cycles}
	}
	d.cells(sums)
	return d
}

// cells writes sums down, at most mostTimes of them and what is left over.
func (d *latencyData) cells(sums map[timed]times) {
	for len(sums) > mostTimes {
		before := len(sums)
		sums = lumped(sums, len(d.Objects)-1, len(d.Loops)-1)
		if len(sums) == before {
			break
		}
	}
	keys := make([]timed, 0, len(sums))
	for k := range sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b timed) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.loop, b.loop), cmp.Compare(a.level, b.level), cmp.Compare(a.bucket, b.bucket))
	})
	for _, k := range keys {
		d.Cells = append(d.Cells, [6]num{num(k.object), num(k.loop), num(k.level), num(k.bucket), num(sums[k].accesses), num(sums[k].cycles)})
	}
}

// lumped puts the half of sums with least cycles down to the others.
func lumped(sums map[timed]times, object, loop int) map[timed]times {
	var cycles []uint64
	for _, s := range sums {
		cycles = append(cycles, s.cycles)
	}
	slices.Sort(cycles)
	least := cycles[len(cycles)/2]
	out := make(map[timed]times)
	for k, s := range sums {
		if s.cycles <= least {
			k.object, k.loop = object, loop
		}
		out[k] = times{out[k].accesses + s.accesses, out[k].cycles + s.cycles}
	}
	return out
}

// ranking is the keys with most cycles, and the place of each.
type ranking struct {
	list  []int
	place map[int]int
}

func (r *ranking) at(key int) int {
	if i, ok := r.place[key]; ok {
		return i
	}
	return len(r.list)
}

func ranked(p *profile.Profile, n int, key func(*profile.Latency) int) *ranking {
	cycles := make([]uint64, n)
	for i := range p.Latencies {
		cycles[key(&p.Latencies[i])] += p.Latencies[i].Cycles
	}
	r := &ranking{place: make(map[int]int)}
	for k, c := range cycles {
		if c > 0 {
			r.list = append(r.list, k)
		}
	}
	slices.SortStableFunc(r.list, func(a, b int) int { return cmp.Compare(cycles[b], cycles[a]) })
	r.list = r.list[:min(len(r.list), mostTimed)]
	for i, k := range r.list {
		r.place[k] = i
	}
	return r
}

// regionName names a loop or function.
func regionName(p *profile.Profile, i int) string {
	r := &p.Regions[i]
	switch {
	case r.Name != "":
		return r.Name
	case r.Kind == profile.Serial:
		return string(profile.Serial)
	}
	return access.CodeName(p, r.Code)
}
