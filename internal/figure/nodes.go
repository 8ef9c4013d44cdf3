package figure

import (
	"fmt"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"numaopt/internal/access"
	"numaopt/internal/units"
)

// flows is the DRAM accesses by the threads of each node.
func flows(in *Input) []access.Flow {
	m := &in.Report.Matrix
	list := make([]access.Flow, len(m.DRAM))
	for i, row := range m.DRAM {
		list[i].Unknown = m.DRAMUnknown[i]
		for j, n := range row {
			if i == j {
				list[i].Local = n
			} else {
				list[i].Remote += n
			}
		}
	}
	return list
}

// capped is at most as many of list, the last of them of all that are left.
func capped(list []access.Flow, most int) (names []string, out []access.Flow) {
	for i, f := range list {
		if i < most {
			names, out = append(names, fmt.Sprint("node ", i)), append(out, f)
			continue
		}
		names[most-1] = fmt.Sprintf("nodes %d–%d", most-1, i)
		out[most-1].Merge(f)
	}
	return names, out
}

// accesses is who reads and writes his own node's memory, and who another's; beside an
// earlier run on as many nodes it is TBB-NUMA's fig. 15.
func accesses(in *Input, opt Options) (*sheet, string) {
	if in.Report.DRAMAccesses == 0 {
		return nil, noAccesses
	}
	names, list := capped(flows(in), opt.Bars)
	if before := in.Before; before != nil && before.Report.Run.Nodes == in.Report.Run.Nodes {
		_, was := capped(flows(before), opt.Bars/2)
		short, is := capped(flows(in), opt.Bars/2)
		names, list = nil, nil
		for i, name := range short {
			names, list = append(names, name+", before", name), append(list, was[i], is[i])
		}
	}
	b := flowBars(list, in.counted())
	b.names = names
	return b.sheet(title(in.counted()) + " by node of the thread"), ""
}

// title is text with a capital letter.
func title(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// flowBars is a bar for each of list, with its remote share at the end.
func flowBars(list []access.Flow, what string) *bars {
	most := uint64(0)
	unknown := false
	for _, f := range list {
		most = max(most, f.Total())
		unknown = unknown || f.Unknown > 0
	}
	unit, name := scale(float64(most))
	local, remote, other := part{name: "local", fill: blue}, part{name: "remote", fill: orange}, part{name: "home not known", fill: grey}
	var notes []string
	for _, f := range list {
		local.values = append(local.values, float64(f.Local)/unit)
		remote.values = append(remote.values, float64(f.Remote)/unit)
		other.values = append(other.values, float64(f.Unknown)/unit)
		notes = append(notes, remoteNote(f))
	}
	b := &bars{axis: what + name, ticks: upTo(float64(most) / unit), parts: []part{local, remote}}
	if unknown {
		b.parts = append(b.parts, other)
	}
	b.parts[len(b.parts)-1].notes = notes
	return b
}

func remoteNote(f access.Flow) string {
	if f.Known() == 0 {
		return ""
	}
	return units.FormatPercent(f.RemotePct()) + " remote"
}

// upTo is the library's ticks without zeros at their ends, and none behind the longest
// bar: there are notes.
type upTo float64

func (u upTo) Ticks(least, most float64) []plot.Tick {
	if u <= 0 {
		return nil
	}
	ticks := plot.DefaultTicks{}.Ticks(least, min(most, float64(u)))
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'g', 6, 64)
		}
	}
	return ticks
}

// Numbers in the cells of a matrix have room up to so many nodes.
const (
	numbered   = 16
	widestCell = vg.Length(45)
	matrixAxis = vg.Length(32) // room for an axis
)

// matrix is who reaches where.
func matrix(in *Input, _ Options) (*sheet, string) {
	m := in.Report.Matrix.DRAM
	total := uint64(0)
	for _, f := range flows(in) {
		total += f.Known()
	}
	switch {
	case in.Report.DRAMAccesses == 0:
		return nil, noAccesses
	case total == 0:
		return nil, "no home of a page that DRAM accesses use is known"
	}
	n := len(m)
	s := &sheet{title: title(in.counted()) + " by node (% of all)", width: columnWidth}
	if n > 6 {
		s.width = pageWidth
	}
	cell := min(widestCell, (s.width-matrixAxis)/vg.Length(n))
	s.body = cell*vg.Length(n)*3/4 + matrixAxis
	g := &grid{cols: n, rows: n, fills: heatFills, class: func(col, row int) int { return heatClass(m[row][col], total) }}
	if n <= numbered {
		g.text = func(col, row int) string { return short(access.Pct(m[row][col], total)) }
	} else {
		s.legends = []legend{heatLegend("% of the " + in.counted() + ":")}
	}
	s.draw = func(c draw.Canvas) {
		p := newPlot("node of the memory", "node of the thread")
		p.X.Tick.Marker, p.Y.Tick.Marker = nodeTicks(n, false), nodeTicks(n, true)
		p.X.Tick.Length, p.Y.Tick.Length = 0, 0
		p.Add(g)
		wide := cell*vg.Length(n) + matrixAxis
		p.Draw(draw.Crop(c, 0, -max(0, c.Size().X-wide), 0, 0))
	}
	return s, ""
}

// short is a share in few letters: nothing is "0", and what is nearly nothing "<0.1".
func short(pct float64) string {
	switch {
	case pct == 0:
		return "0"
	case pct < 0.1:
		return "<0.1"
	}
	return fmt.Sprintf("%.1f", pct)
}

// nodeTicks are the numbers of n nodes in the middles of their cells, as many of them
// as have room.
func nodeTicks(n int, down bool) plot.ConstantTicks {
	every := (n-1)/numbered + 1
	var ticks plot.ConstantTicks
	for i := 0; i < n; i += every {
		at := float64(i) + 0.5
		if down {
			at = float64(n) - at
		}
		ticks = append(ticks, plot.Tick{Value: at, Label: fmt.Sprint(i)})
	}
	return ticks
}
