package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"numaopt/internal/access"
	"numaopt/internal/heat"
	"numaopt/internal/profile"
	"numaopt/internal/report"
	"numaopt/internal/units"
)

// heatmap is a panel for each of the objects that matter most: its pages from left to
// right, the threads from the top down, and below them where the pages are.
func heatmap(in *Input, opt Options) (*sheet, string) {
	objects := hottest(in.Report, opt)
	switch {
	case in.Report.DRAMAccesses == 0:
		return nil, noAccesses
	case len(objects) == 0:
		return nil, "no object that could be placed has DRAM accesses"
	}
	groups, _ := access.Groups(in.Profile)
	shown := make([]int, len(objects))
	for i, o := range objects {
		shown[i] = slices.IndexFunc(groups, func(g access.Group) bool { return g.Name == o.Name && string(g.Kind) == o.Kind })
	}
	maps := heat.Of(in.Profile, groups, shown, heat.Options{Axis: heat.Threads, MaxTiles: opt.Tiles, MaxColumns: opt.Columns})
	s := &sheet{
		title: "Use of pages by threads", width: pageWidth,
		legends: []legend{
			heatLegend(in.counted() + " by page and thread, in % of the object's busiest spot:"),
			nodeLegend("home of the pages, in the strips below:", maps[0].Nodes),
		},
	}
	across := 2
	if len(maps) == 1 {
		across = 1
	}
	down := (len(maps) + across - 1) / across
	s.body = vg.Length(down) * panelHeight
	s.draw = func(c draw.Canvas) {
		tiles := draw.Tiles{Cols: across, Rows: down, PadX: 10, PadY: 6}
		for i := range maps {
			drawHeat(tiles.At(c, i%across, i/across), &maps[i], &objects[i])
		}
	}
	return s, ""
}

const panelHeight = 4.2 * vg.Centimeter

// hottest is the first objects of the report that somebody placed or could place; one
// at least, where there is any.
func hottest(r *report.Report, opt Options) (list []report.Object) {
	for _, o := range r.Objects {
		matters := len(list) == 0 || len(list) < opt.Objects && float64(o.DRAMPct) >= opt.LeastPct
		if !profile.Kind(o.Kind).Private() && o.DRAMAccesses > 0 && matters {
			list = append(list, o)
		}
	}
	return list
}

// drawHeat paints one object.
func drawHeat(c draw.Canvas, m *heat.Map, o *report.Object) {
	n := len(m.Columns)
	busiest := slices.Max(m.DRAM)
	high := float64(n) / 10 // of the strip, in rows
	threads := &grid{
		cols: m.Tiles(), rows: n, wide: float64(m.Tile), end: float64(m.Pages), fills: heatFills,
		class: func(col, row int) int { return heatClass(m.DRAM[col*n+row], busiest) },
	}
	homes := &grid{
		cols: m.Tiles(), rows: 1, bottom: -1.5 * high, high: high, wide: float64(m.Tile), end: float64(m.Pages),
		fills: nodeFills(m.Nodes),
		class: func(col, _ int) int { return mostly(m.Homes[col*(m.Nodes+1) : (col+1)*(m.Nodes+1)]) },
	}
	nodes := make([]int, n)
	for i, column := range m.Columns {
		nodes[i] = int(column.Node)
	}
	p := newPlot(fmt.Sprintf("page (of %v)", units.Bytes(units.PageSize)), "threads")
	p.X.Tick.Marker = whole{}
	p.Add(threads, homes, &separators{nodes: nodes})
	ticks := bandTicks(nodes, c.Size().Y)
	p.Y.Tick.Marker = append(ticks, plot.Tick{Value: -high, Label: "home"})
	p.Y.Tick.Length = 0
	p.Draw(draw.Crop(c, 0, 0, 0, -rowHeight))
	style := plain(labelSize)
	what := fmt.Sprintf(" (%s, %s remote)", units.Bytes(o.Bytes), o.RemoteDRAM)
	wide := c.Size().X
	c.FillText(style, vg.Point{X: c.Min.X, Y: c.Max.Y - labelSize}, fit(style, o.Name, wide-style.Width(what))+what)
}

// whole is the library's ticks at whole numbers, without digits after the point.
type whole struct{}

func (whole) Ticks(least, most float64) (ticks []plot.Tick) {
	for _, t := range (plot.DefaultTicks{}).Ticks(least, most) {
		if t.Value != math.Trunc(t.Value) {
			continue
		}
		if t.Label != "" {
			t.Label = fmt.Sprintf("%.0f", t.Value)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// mostly is the index of the largest of counts; -1 where all are 0.
func mostly[N int | uint64](counts []N) int {
	best := -1
	for i, n := range counts {
		if n > 0 && (best < 0 || n > counts[best]) {
			best = i
		}
	}
	return best
}

// nodeFills is the colours of n nodes, and behind them that of an unknown one.
func nodeFills(n int) []color.Color {
	var fills []color.Color
	for i := range n {
		fills = append(fills, distinct[i%len(distinct)])
	}
	return append(fills, grey)
}

// nodeLegend has all nodes of a colour in one key.
func nodeLegend(heading string, nodes int) legend {
	l := legend{heading: heading}
	for i := range min(nodes, len(distinct)) {
		name := fmt.Sprint("node ", i)
		for k := i + len(distinct); k < nodes && k <= i+2*len(distinct); k += len(distinct) {
			name += fmt.Sprint(", ", k)
		}
		if i+3*len(distinct) < nodes {
			name += ", …"
		}
		l.keys = append(l.keys, key{fills: []color.Color{distinct[i]}, name: name})
	}
	l.keys = append(l.keys, key{fills: []color.Color{grey}, name: "not known"})
	return l
}

// maxSeparated is the number of nodes between which lines are drawn in any case.
const maxSeparated = 16

// separators are lines between the rows of different nodes, as long as these are more
// than lines themselves.
type separators struct{ nodes []int }

func (s *separators) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	if y(1)-y(0) < 2 && s.nodes[len(s.nodes)-1] > maxSeparated {
		return
	}
	for i := 1; i < len(s.nodes); i++ {
		if s.nodes[i] != s.nodes[i-1] {
			at := y(float64(len(s.nodes) - i))
			c.StrokeLine2(hairline, c.Min.X, at, c.Max.X, at)
		}
	}
}

// bandTicks names the nodes in the middles of their rows, as many as height has room
// for.
func bandTicks(nodes []int, height vg.Length) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	last := height // from the top; the first is always named
	for i := 0; i < len(nodes); {
		from := i
		for i < len(nodes) && nodes[i] == nodes[from] {
			i++
		}
		mid := float64(len(nodes)) - float64(from+i)/2
		at := height * vg.Length(mid) / vg.Length(len(nodes))
		if from > 0 && last-at < rowHeight {
			continue
		}
		last = at
		ticks = append(ticks, plot.Tick{Value: mid, Label: fmt.Sprint("node ", nodes[from])})
	}
	return ticks
}
