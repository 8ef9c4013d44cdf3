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
	beside bool
	axis   string
	// max is the end of the axis; 0 is as far as the longest bar and the notes need.
	max     float64
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
	// mostHeight is that of all bars, from which on they move together to fit on a page.
	mostHeight = 22 * vg.Centimeter
)

// keys is the legend of the parts.
func (b *bars) keys() legend {
	var l legend
	for _, p := range b.parts {
		l.keys = append(l.keys, key{fills: []color.Color{p.fill}, name: p.name})
	}
	return l
}

// sheet is a figure of the bars: of a column's width, where that has room for the names.
func (b *bars) sheet(title string) *sheet {
	width, style := columnWidth, plain(smallSize)
	for _, name := range b.names {
		if fit(style, name, width*nameShare) != name {
			width = pageWidth
		}
	}
	return &sheet{
		title: title, width: width, body: vg.Length(len(b.names))*b.step() + 26,
		legends: []legend{b.keys()},
		draw:    func(c draw.Canvas) { b.draw(c, width*nameShare) },
	}
}

// nameShare is the part of the width that names may take.
const nameShare = 0.35

func (b *bars) step() vg.Length {
	if b.beside {
		return barHeight*vg.Length(len(b.parts)) + 5
	}
	return max(barHeight+1, min(barStep, mostHeight/vg.Length(len(b.names))))
}

// draw paints the bars; their names take the width that is given, or less.
func (b *bars) draw(c draw.Canvas, names vg.Length) {
	p := newPlot(b.axis, "")
	n := len(b.names)
	p.Y.Min, p.Y.Max = -0.5, float64(n)-0.5
	p.Y.Tick.Length = 0
	var ticks []plot.Tick
	widest := vg.Length(0)
	for i, name := range b.names {
		label := fit(p.Y.Tick.Label, name, names)
		widest = max(widest, p.Y.Tick.Label.Width(label))
		ticks = append(ticks, plot.Tick{Value: float64(n - 1 - i), Label: label})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Tick.Marker = b.ticks
	p.X.Min, p.X.Max = 0, b.max
	if b.max == 0 {
		p.X.Max = b.end(c.Size().X - widest - 10)
	}
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

// end is the end of an axis of the given width that has room for all bars and notes.
func (b *bars) end(width vg.Length) float64 {
	style := plain(smallSize)
	most := 0.0
	for i := range b.names {
		sum := 0.0
		for _, part := range b.parts {
			if b.beside {
				sum = 0
			}
			sum += part.values[i]
			room := width
			if part.notes != nil {
				room -= style.Width(part.notes[i]) + 5
			}
			most = max(most, sum*float64(width/room))
		}
	}
	if most == 0 {
		return 1
	}
	return most
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
