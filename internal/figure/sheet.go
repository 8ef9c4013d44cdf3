package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"strings"

	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// sheet is a figure's paper: title, where the data is from, legends, and below them
// what draw paints.
type sheet struct {
	title, subtitle string
	legends         []legend
	width, body     vg.Length // body is the height below the legends
	draw            func(draw.Canvas)
}

const (
	margin    = 2 * vg.Millimeter
	rowHeight = 11 // of text, in points
	dpi       = 300
)

// Sizes of text in points: none is below 7, which is the least that journals take.
const (
	titleSize = 9
	labelSize = 8
	smallSize = 7
)

// The colours of Okabe and Ito, with greys for what is of less interest.
var (
	black  = color.NRGBA{0, 0, 0, 255}
	orange = color.NRGBA{0xE6, 0x9F, 0x00, 255}
	sky    = color.NRGBA{0x56, 0xB4, 0xE9, 255}
	green  = color.NRGBA{0x00, 0x9E, 0x73, 255}
	yellow = color.NRGBA{0xF0, 0xE4, 0x42, 255}
	blue   = color.NRGBA{0x00, 0x72, 0xB2, 255}
	red    = color.NRGBA{0xD5, 0x5E, 0x00, 255}
	purple = color.NRGBA{0xCC, 0x79, 0xA7, 255}
	grey   = color.NRGBA{0xBB, 0xBB, 0xBB, 255}
	pale   = color.NRGBA{0xEE, 0xEE, 0xEE, 255}
	dark   = color.NRGBA{0x55, 0x55, 0x55, 255}
)

// distinct are colours for things without an order. More things than colours share
// them in turn.
var distinct = []color.NRGBA{blue, orange, green, purple, sky, red, yellow, black}

func styleOf(size vg.Length, weight xfont.Weight) text.Style {
	f := font.From(font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight}, size)
	return text.Style{Color: black, Font: f, Handler: plot.DefaultTextHandler}
}

func plain(size vg.Length) text.Style { return styleOf(size, xfont.WeightNormal) }

// centred is the style of small text in the middle of something. The library centres
// what is below the line too, which digits have not.
func centred() text.Style {
	s := plain(smallSize)
	s.XAlign, s.YAlign = draw.XCenter, draw.YCenter+0.12
	return s
}

// ink is the colour of text on a fill.
func ink(fill color.Color) color.Color {
	r, g, b, _ := fill.RGBA()
	if 299*r+587*g+114*b < 500*0xffff {
		return color.White
	}
	return black
}

// height is that of the whole sheet.
func (s *sheet) height() vg.Length { return s.top(nil) + s.body + margin }

var hairline = draw.LineStyle{Color: dark, Width: 0.3}

// top draws what is above the body, and returns how high that is; nil only measures.
func (s *sheet) top(c *draw.Canvas) vg.Length {
	p := pen{c: c, wide: s.width - 2*margin, y: margin}
	p.line(styleOf(titleSize, xfont.WeightBold), s.title)
	origin := plain(smallSize)
	origin.Color = dark
	p.line(origin, s.subtitle)
	for i := range s.legends {
		p.legend(&s.legends[i])
	}
	return p.y + 4
}

func (s *sheet) paint(c vg.CanvasSizer) {
	dc := draw.New(c)
	dc.SetColor(color.White)
	dc.Fill(dc.Path())
	s.draw(draw.Crop(dc, margin, -margin, margin, -s.top(&dc)))
}

// SVG writes the figure with text as text.
func (s *sheet) SVG(w io.Writer) error {
	c := &measured{Canvas: vgsvg.New(s.width, s.height())}
	s.paint(c)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	out := strings.ReplaceAll(b.String(), "font-family:Liberation Sans;", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
	for i, part := range strings.SplitAfter(out, "<text ") {
		if i > 0 {
			part = fmt.Sprintf("textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\" ", c.widths[i-1].Points()) + part
		}
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

// measured is a canvas that notes how wide its texts are. The library names one font and
// no width: viewers without that font would let texts run into each other.
type measured struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString writes str at a point.
func (m *measured) FillString(face font.Face, at vg.Point, str string) {
	m.widths = append(m.widths, face.Width(str))
	m.Canvas.FillString(face, at, str)
}

// PNG writes the figure in print resolution.
func (s *sheet) PNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(s.width, s.height()), vgimg.UseDPI(dpi))
	s.paint(lettered{c})
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// lettered is a canvas that shows "?" for letters that the font lacks, instead of nothing.
type lettered struct{ *vgimg.Canvas }

// FillString writes str at a point.
func (l lettered) FillString(face font.Face, at vg.Point, str string) {
	var b sfnt.Buffer
	l.Canvas.FillString(face, at, strings.Map(func(r rune) rune {
		if i, err := face.Face.GlyphIndex(&b, r); err != nil || i == 0 {
			return '?'
		}
		return r
	}, str))
}

// newPlot is empty axes in the style of all figures.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = plain(labelSize).Font
		a.Label.Padding = 2
		a.Tick.Label.Font = plain(smallSize).Font
		a.Tick.Length = 3
		a.Padding = 0
	}
	p.Y.Tick.Label.YAlign -= 0.06 // as in centred: the library is too high here
	p.X.Label.Text, p.Y.Label.Text = x, y
	return p
}
