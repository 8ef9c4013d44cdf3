package figure

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/brewer"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// grid is cells in a few colours, the first row at the top. Neighbours in a row that
// have one colour are one rectangle, and all rectangles of a colour one path: an SVG
// stays small.
//
// Note: plotter.HeatMap makes a path of each cell, some MB of SVG.
type grid struct {
	cols, rows int
	// left and bottom are the corner by the axes, wide and high the size of a cell,
	// both 1 where 0; end cuts the last column, where it is not 0.
	left, bottom, wide, high, end float64

	fills []color.Color
	class func(col, row int) int    // index in fills; -1 is left empty
	text  func(col, row int) string // nil is none
}

// bleed is by how much cells overlap: where they only meet, viewers show a line.
const bleed = vg.Length(0.1)

func (g *grid) x(col int) float64 {
	x := g.left + float64(col)*or1(g.wide)
	if g.end != 0 {
		return min(x, g.end)
	}
	return x
}

// y is the lower edge of a row.
func (g *grid) y(row int) float64 { return g.bottom + float64(g.rows-1-row)*or1(g.high) }

func or1(f float64) float64 {
	if f == 0 {
		return 1
	}
	return f
}

// DataRange is the outer edges.
func (g *grid) DataRange() (left, right, bottom, top float64) {
	return g.left, g.x(g.cols), g.bottom, g.y(-1)
}

// Plot draws the cells.
func (g *grid) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	paths := make([]vg.Path, len(g.fills))
	for row := range g.rows {
		bottom, top := y(g.y(row))-bleed, y(g.y(row-1))+bleed
		for col := 0; col < g.cols; {
			k, from := g.class(col, row), col
			for col < g.cols && g.class(col, row) == k {
				col++
			}
			if k >= 0 {
				box := vg.Rectangle{Min: vg.Point{X: x(g.x(from)) - bleed, Y: bottom}, Max: vg.Point{X: x(g.x(col)) + bleed, Y: top}}
				paths[k] = append(paths[k], box.Path()...)
			}
		}
	}
	for k, path := range paths {
		if len(path) > 0 {
			c.SetColor(g.fills[k])
			c.Fill(path)
		}
	}
	if g.text != nil {
		g.write(c, x, y)
	}
}

func (g *grid) write(c draw.Canvas, x, y func(float64) vg.Length) {
	style := centred()
	for row := range g.rows {
		for col := range g.cols {
			style.Color = black
			if k := g.class(col, row); k >= 0 {
				style.Color = ink(g.fills[k])
			}
			at := vg.Point{X: (x(g.x(col)) + x(g.x(col+1))) / 2, Y: (y(g.y(row)) + y(g.y(row-1))) / 2}
			c.FillText(style, at, g.text(col, row))
		}
	}
}

// A quantity is drawn on a logarithmic scale of so many decades up to the whole, in so
// many shades each: fewer make bands of what hardly differs.
const (
	decades = 3
	shades  = 8
)

// heatFills are the shades, light to dark. The lightest of the palette is left out, as it
// is hardly told from paper.
var heatFills = func() []color.Color {
	anchors := yellowToBlue(9)
	var fills []color.Color
	for i := range decades * shades {
		at := float64(i) / (decades*shades - 1) * float64(len(anchors)-1)
		k := min(int(at), len(anchors)-2)
		fills = append(fills, blend(anchors[k], anchors[k+1], at-float64(k)))
	}
	return fills
}()

// yellowToBlue is ColorBrewer's YlGnBu of n colours without the first.
func yellowToBlue(n int) (out []color.NRGBA) {
	p, err := brewer.GetPalette(brewer.TypeSequential, "YlGnBu", n)
	if err != nil {
		panic(err)
	}
	for _, c := range p.Colors()[1:] {
		out = append(out, color.NRGBAModel.Convert(c).(color.NRGBA))
	}
	return out
}

// blend is a share t of b, in [0,1], and the rest of a.
func blend(a, b color.NRGBA, t float64) color.NRGBA {
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x)*(1-t) + float64(y)*t)) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// heatClass is the shade of part in whole; -1 for nothing.
func heatClass(part, whole uint64) int {
	if part == 0 {
		return -1
	}
	at := (decades + math.Log10(float64(part)/float64(whole))) * shades
	return max(0, min(int(at), len(heatFills)-1))
}

// heatLegend has the scale from a thousandth to the whole, in per cent.
func heatLegend(heading string) legend {
	l := legend{heading: heading, keys: []key{{fills: []color.Color{color.White}, name: "0"}, {name: "0.1"}}}
	for i, name := range []string{"1", "10", "100"} {
		l.keys = append(l.keys, key{fills: heatFills[i*shades : (i+1)*shades], name: name})
	}
	return l
}
