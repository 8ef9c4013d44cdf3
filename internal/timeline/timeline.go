// Package timeline tells which thread worked in which loop, on data of which node, and
// when (what fig. 18 of work-time inflation shows of tasks).
//
// # Input
//
// A profile with intervals, perhaps restricted to some regions by access.Only.
//
// # Output
//
// A Timeline: for each thread the parts of the run in which it worked, with the region
// that it worked most in and its DRAM accesses by the memory's node. Trace writes it as
// a file that Perfetto and chrome://tracing open.
//
// # Method
//
// Sums of the intervals. Where a thread has no cell it waited, slept, or did not exist.
//
// # Limits
//
// The clock is the profile's, see profile.Clock: time under perf; under emulation the
// accesses that a thread made, waiting threads put beside those that they wait for. By
// that clock remote accesses take no longer than local ones: read from it who works on
// whose memory and who waits, not how long it takes.
package timeline

import (
	"fmt"
	"time"

	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Timeline is a run in parts.
type Timeline struct {
	Clock  profile.Clock
	Width  uint64 // of a part, by the Clock
	Parts  int    // from 0 to the end of the last Cell
	Nodes  int
	Tracks []Track // of threads that have cells, in the order of the profile's
}

// Track is one thread.
type Track struct {
	Thread int    // index in the profile's threads
	Cells  []Cell // in order of time; they do not overlap
}

// Cell is what a thread did from part From to before part To.
type Cell struct {
	From, To int
	Region   int // in which it worked most, index in the profile's regions
	// Homes is DRAM accesses by node of the memory, in all regions; the last is of
	// memory whose node is not known.
	Homes []uint64
	Work  uint64 // accesses of any level
}

// DRAM is the DRAM accesses of c.
func (c *Cell) DRAM() (sum uint64) {
	for _, n := range c.Homes {
		sum += n
	}
	return sum
}

// Of returns the timeline of p in at most as many parts; false where the profile has
// none. most is 1 or more; profile.MostIntervals takes all there are.
func Of(p *profile.Profile, most int) (*Timeline, bool) {
	if len(p.Intervals) == 0 {
		return nil, false
	}
	last := 0
	for i := range p.Intervals {
		last = max(last, int(p.Intervals[i].At))
	}
	step := last/most + 1
	t := &Timeline{
		Clock: p.Run.IntervalClock, Width: p.Run.IntervalWidth * uint64(step), Parts: last/step + 1, Nodes: len(p.Run.Topology.Nodes),
	}
	work := make([]uint64, len(p.Regions))
	for rest := p.Intervals; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Thread == rest[0].Thread {
			n++
		}
		t.Tracks = append(t.Tracks, Track{Thread: int(rest[0].Thread), Cells: t.cells(rest[:n], step, work)})
		rest = rest[n:]
	}
	return t, true
}

// cells makes the cells of one thread, of step parts each. work is 0 for each region.
func (t *Timeline) cells(list []profile.Interval, step int, work []uint64) (cells []Cell) {
	for len(list) > 0 {
		at, n := int(list[0].At)/step, 1
		for n < len(list) && int(list[n].At)/step == at {
			n++
		}
		c := Cell{From: at, To: at + 1, Homes: make([]uint64, t.Nodes+1)}
		c.sum(list[:n], work)
		cells = append(cells, c)
		list = list[n:]
	}
	return cells
}

func (c *Cell) sum(list []profile.Interval, work []uint64) {
	c.Region = int(list[0].Region)
	for _, v := range list {
		home := int(v.Home)
		if v.Home == topo.Unknown {
			home = len(c.Homes) - 1
		}
		c.Homes[home] += v.Count
		c.Work += v.Work
		// Of accesses that the levels do not tell of, those of DRAM are all there is.
		work[v.Region] += max(v.Work, v.Count)
		if r := int(v.Region); work[r] > work[c.Region] || work[r] == work[c.Region] && r < c.Region {
			c.Region = r
		}
	}
	for i := range list {
		work[list[i].Region] = 0
	}
}

// Merged is t with each thread's neighbouring cells of one region as one.
func (t *Timeline) Merged() *Timeline {
	out := *t
	out.Tracks = make([]Track, len(t.Tracks))
	for i, track := range t.Tracks {
		out.Tracks[i] = Track{Thread: track.Thread, Cells: merged(track.Cells)}
	}
	return &out
}

func merged(cells []Cell) (out []Cell) {
	for _, c := range cells {
		if n := len(out); n > 0 && out[n-1].Region == c.Region && out[n-1].To == c.From {
			last := &out[n-1]
			last.To = c.To
			last.Work += c.Work
			for i, count := range c.Homes {
				last.Homes[i] += count
			}
			continue
		}
		c.Homes = append([]uint64(nil), c.Homes...)
		out = append(out, c)
	}
	return out
}

// Unit is what the clock counts, for an axis: "accesses of each thread".
func (t *Timeline) Unit() string {
	if t.Clock == profile.Accesses {
		return "accesses of each thread"
	}
	return "time"
}

// Moment is the beginning of a part, for an axis: "1.5 ms", "2.0 million accesses".
func (t *Timeline) Moment(part int) string {
	at := uint64(part) * t.Width
	if t.Clock != profile.Accesses {
		return time.Duration(at).String()
	}
	switch {
	case at >= 1e9:
		return fmt.Sprintf("%.3g billion accesses", float64(at)/1e9)
	case at >= 1e6:
		return fmt.Sprintf("%.3g million accesses", float64(at)/1e6)
	}
	return fmt.Sprintf("%d accesses", at)
}
