package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/timeline"
)

// timelines is two panels of one run: above by the loop that each thread worked in,
// below by the node whose memory it used (work-time inflation, fig. 18).
func timelines(in *Input, opt Options) (*sheet, string) {
	t, ok := timeline.Of(in.Profile, opt.Parts)
	if !ok {
		return nil, "the profile does not tell when accesses were made"
	}
	p := in.Profile
	slices.SortStableFunc(t.Tracks, func(a, b timeline.Track) int {
		x, y := &p.Threads[a.Thread], &p.Threads[b.Thread]
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Rank, y.Rank))
	})
	loops := busiest(t, len(p.Regions), opt.Names)
	s := &sheet{title: "Work over time", width: pageWidth}
	memory := nodeLegend("memory of:", t.Nodes)
	memory.keys = append(memory.keys, key{fills: []color.Color{pale}, name: "caches only"}, key{fills: []color.Color{color.White}, name: "waiting"})
	s.legends = []legend{loopLegend(in, loops), memory}
	high := min(max(vg.Length(len(t.Tracks))*8, 50), 150) + 26
	s.body = 2 * high
	s.draw = func(c draw.Canvas) {
		x, label := clock(t)
		tiles := draw.Tiles{Cols: 1, Rows: 2, PadY: 4}
		fills := append(nodeFills(t.Nodes), pale)
		drawTrack(tiles.At(c, 0, 0), p, t, x, [2]string{label, "loop"}, loopFills(loops), func(c *timeline.Cell) int { return classOf(c.Region, loops) })
		drawTrack(tiles.At(c, 0, 1), p, t, x, [2]string{label, "memory"}, fills, func(c *timeline.Cell) int {
			if k := mostly(c.Homes); k >= 0 {
				return k
			}
			return len(fills) - 1
		})
	}
	return s, ""
}

// busiest is the regions with most work, most of it first.
func busiest(t *timeline.Timeline, regions, most int) []int {
	work := make([]uint64, regions)
	for _, track := range t.Tracks {
		for i := range track.Cells {
			c := &track.Cells[i]
			work[c.Region] += max(c.Work, c.DRAM())
		}
	}
	order := make([]int, 0, regions)
	for i := range work {
		if work[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(work[b], work[a]) })
	return order[:min(most, len(order))]
}

func classOf(region int, loops []int) int {
	if i := slices.Index(loops, region); i >= 0 {
		return i
	}
	return len(loops)
}

// loopFill is the colour of the i-th of the busiest loops: the first nodes have others.
func loopFill(i int) color.Color { return distinct[(i+2)%len(distinct)] }

// loopFills is a colour for each of loops, and behind them that of all others.
func loopFills(loops []int) (fills []color.Color) {
	for i := range loops {
		fills = append(fills, loopFill(i))
	}
	return append(fills, grey)
}

func loopLegend(in *Input, loops []int) legend {
	l := legend{heading: "loop:"}
	for i, r := range loops {
		l.keys = append(l.keys, key{fills: []color.Color{loopFill(i)}, name: access.RegionName(in.Profile, r)})
	}
	l.keys = append(l.keys, key{fills: []color.Color{grey}, name: "others"})
	return l
}

// clock is the length of a part on the axis, and the axis' label.
func clock(t *timeline.Timeline) (part float64, label string) {
	all := float64(t.Width) * float64(t.Parts)
	if t.Clock == profile.Accesses {
		unit, name := scale(all)
		return float64(t.Width) / unit, t.Unit() + name
	}
	unit, name := 1.0, "ns"
	switch {
	case all >= 2e9:
		unit, name = 1e9, "s"
	case all >= 2e6:
		unit, name = 1e6, "ms"
	case all >= 2e3:
		unit, name = 1e3, "µs"
	}
	return float64(t.Width) / unit, fmt.Sprintf("%s (%s)", t.Unit(), name)
}

// drawTrack paints one panel: a row for each thread, in the colour that class gives to
// what it did.
func drawTrack(c draw.Canvas, p *profile.Profile, t *timeline.Timeline, part float64, labels [2]string, fills []color.Color, class func(*timeline.Cell) int) {
	rows := make([][]int, len(t.Tracks))
	nodes := make([]int, len(t.Tracks))
	for i, track := range t.Tracks {
		nodes[i] = int(p.Threads[track.Thread].Node)
		rows[i] = slices.Repeat([]int{-1}, t.Parts)
		for k := range track.Cells {
			cell := &track.Cells[k]
			for at := cell.From; at < cell.To; at++ {
				rows[i][at] = class(cell)
			}
		}
	}
	plt := newPlot(labels[0], labels[1])
	plt.Add(&grid{cols: t.Parts, rows: len(rows), wide: part, fills: fills, class: func(col, row int) int { return rows[row][col] }})
	plt.Add(&separators{nodes: nodes})
	plt.Y.Tick.Marker = bandTicks(nodes, c.Size().Y-26)
	plt.Y.Tick.Length = 0
	plt.Draw(c)
}
