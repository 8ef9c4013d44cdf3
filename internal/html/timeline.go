package html

import (
	"cmp"
	"fmt"
	"slices"

	"numaopt/internal/profile"
	"numaopt/internal/timeline"
)

const (
	// mostCells is how many cells a timeline has, of all threads: what a browser draws
	// at once. mostParts is more than a screen has columns for.
	mostCells = 20_000
	mostParts = 300
	// mostTracks is the threads that have room one below the other.
	mostTracks = 128
	// mostLoops is the loops that have a colour of their own, but for the last: others.
	mostLoops = 8
)

// timelineData is who worked in which loop, on data of which node, and when.
type timelineData struct {
	Unit    string   `json:"unit"`
	Moments []string `json:"moments"` // by part
	Tracks  []string `json:"tracks"`
	Nodes   []int    `json:"nodes"` // by track
	Loops   []string `json:"loops"`
	// Cells is track, first part, part behind the last, loop, node of most of the
	// memory (-1 is not known), DRAM accesses, per cent of them remote (-1: none known).
	Cells [][7]num `json:"cells"`
	Cut   string   `json:"cut"`
}

// timelines is nil where the profile has none.
func timelines(p *profile.Profile) *timelineData {
	threads := make(map[int32]bool)
	for i := range p.Intervals {
		threads[p.Intervals[i].Thread] = true
	}
	tracks := min(mostTracks, max(1, len(threads)))
	t, ok := timeline.Of(p, min(mostParts, mostCells/tracks))
	if !ok {
		return nil
	}
	d := &timelineData{Unit: t.Unit(), Cells: [][7]num{}}
	if len(t.Tracks) > tracks {
		d.Cut = fmt.Sprintf("The first %d of %d threads are shown; numaopt report --format trace has all.", tracks, len(t.Tracks))
		t.Tracks = t.Tracks[:tracks]
	}
	for i := range t.Parts {
		d.Moments = append(d.Moments, t.Moment(i))
	}
	colour := d.colours(p, t)
	for i, track := range t.Tracks {
		x := &p.Threads[track.Thread]
		d.Tracks = append(d.Tracks, fmt.Sprintf("thread %d", x.Rank))
		d.Nodes = append(d.Nodes, int(x.Node))
		for k := range track.Cells {
			c := &track.Cells[k]
			node, remote := memory(c, int(x.Node))
			d.Cells = append(d.Cells, [7]num{num(i), num(c.From), num(c.To), num(colour(c.Region)), num(node), num(c.DRAM()), num(remote)})
		}
	}
	return d
}

// colours names the loops with most work, and returns the place of each in Loops.
func (d *timelineData) colours(p *profile.Profile, t *timeline.Timeline) func(region int) int {
	work := make([]uint64, len(p.Regions))
	for _, track := range t.Tracks {
		for i := range track.Cells {
			work[track.Cells[i].Region] += 1 + track.Cells[i].Work
		}
	}
	var order []int
	for r, w := range work {
		if w > 0 {
			order = append(order, r)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(work[b], work[a]) })
	place := make(map[int]int)
	for i, r := range order {
		if i == mostLoops-1 && len(order) > mostLoops {
			d.Loops = append(d.Loops, "others")
		} else if i < mostLoops {
			d.Loops = append(d.Loops, middle(regionName(p, r), 60))
		}
		place[r] = min(i, mostLoops-1)
	}
	return func(region int) int { return place[region] }
}

// memory is the node that most of c's accesses go to, and the per cent of those to known
// nodes that are not to own.
func memory(c *timeline.Cell, own int) (node, remote int) {
	nodes := len(c.Homes) - 1
	var most, known uint64
	node, remote = -1, -1
	for n, count := range c.Homes[:nodes] {
		if known += count; count > most {
			node, most = n, count
		}
	}
	if known > 0 {
		remote = int(100 * (known - c.Homes[own]) / known)
	}
	return node, remote
}
