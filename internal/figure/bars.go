package figure

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// bars are horizontal bars of several parts, the first at the top.
type bars struct {
	names []string
	parts []part
	// beside puts the parts of a bar below each other instead of in one line.
	beside  bool
	axis    string
	max     float64 // the end of the axis
	ticks   plot.Ticker
	numbers bool // write them into the parts
}

// part is one colour of all bars. values has an entry for each bar; notes too, written
// behind the part, or is nil.
type part struct {
	name   string
	fill   color.NRGBA
	values []float64
	notes  []string
}

const (
	barHeight = vg.Length(9)
	barStep   = vg.Length(14)
)

// keys is the legend of the parts.
func (b *bars) keys() legend {
	var l legend
	for _, p := range b.parts {
		l.keys = append(l.keys, key{fills: []color.Color{p.fill}, name: p.name})
	}
	return l
}

// sheet is a figure of the bars.
func (b *bars) sheet(title string, width vg.Length) *sheet {
	return &sheet{
		title: title, width: width, body: vg.Length(len(b.names))*b.step() + 26,
		legends: []legend{b.keys()},
		draw:    func(c draw.Canvas) { b.draw(c, width*2/5) },
	}
}

func (b *bars) step() vg.Length {
	if b.beside {
		return barHeight*vg.Length(len(b.parts)) + 5
	}
	return barStep
}

// draw paints the bars; their names take the width that is given, or less.
func (b *bars) draw(c draw.Canvas, names vg.Length) {
	p := newPlot(b.axis, "")
	n := len(b.names)
	p.X.Min, p.X.Max = 0, b.max
	p.X.Tick.Marker = b.ticks
	p.Y.Min, p.Y.Max = -0.5, float64(n)-0.5
	p.Y.Tick.Length = 0
	var ticks []plot.Tick
	for i, name := range b.names {
		ticks = append(ticks, plot.Tick{Value: float64(n - 1 - i), Label: fit(p.Y.Tick.Label, name, names) + " "})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	sums := make([]float64, n)
	for k, part := range b.parts {
		p.Add(&segments{bars: b, part: k, from: append([]float64(nil), sums...)})
		for i, v := range part.values {
			if !b.beside {
				sums[i] += v
			}
		}
	}
	p.Draw(c)
}

// segments draws one part of all bars, and what is written in and beside it.
//
// Note: plotter.BarChart does not tell how long a bar comes out, which decides whether
// it has room for a number.
type segments struct {
	*bars
	part int
	from []float64 // where each begins
}

func (s *segments) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	part := &s.parts[s.part]
	for i, v := range part.values {
		mid := y(float64(len(part.values)-1-i)) + s.offset(s.part)
		box := vg.Rectangle{Min: vg.Point{X: x(s.from[i]), Y: mid - barHeight/2}, Max: vg.Point{X: x(s.from[i] + v), Y: mid + barHeight/2}}
		c.SetColor(part.fill)
		c.Fill(box.Path())
		style := centred()
		if part.notes != nil {
			note := style
			note.XAlign = draw.XLeft
			c.FillText(note, vg.Point{X: box.Max.X + 3, Y: mid}, part.notes[i])
		}
		style.Color = ink(part.fill)
		number := fmt.Sprintf("%.1f", v)
		if s.numbers && style.Width(number)+3 < box.Size().X {
			c.FillText(style, vg.Point{X: (box.Min.X + box.Max.X) / 2, Y: mid}, number)
		}
	}
}

// offset is how far a part is above the middle of its bar.
func (b *bars) offset(part int) vg.Length {
	if !b.beside {
		return 0
	}
	return barHeight * (vg.Length(len(b.parts)-1)/2 - vg.Length(part))
}

// percentTicks are those of an axis of shares.
var percentTicks = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 20, Label: "20"}, {Value: 40, Label: "40"}, {Value: 60, Label: "60"}, {Value: 80, Label: "80"}, {Value: 100, Label: "100"}}

// scale is the power of 1000 that counts up to most are shown in, and its name.
func scale(most float64) (unit float64, name string) {
	switch {
	case most >= 1e9:
		return 1e9, " (billions)"
	case most >= 1e6:
		return 1e6, " (millions)"
	case most >= 1e4:
		return 1e3, " (thousands)"
	}
	return 1, ""
}
