package figure

import (
	"bytes"
	"image/color"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	xfont "golang.org/x/image/font"
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

// legend is one row of keys, or as many rows as they take.
type legend struct {
	heading string
	keys    []key
}

// key is colours and their meaning, or a line where that has a width, or a word alone.
type key struct {
	fills []color.Color
	name  string
	line  draw.LineStyle
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
var distinct = []color.NRGBA{blue, orange, green, purple, sky, red, yellow}

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

// top draws what is above the body, and returns how high that is; nil only measures.
func (s *sheet) top(c *draw.Canvas) vg.Length {
	y := margin + rowHeight
	wide := s.width - 2*margin
	write := func(style text.Style, x vg.Length, str string) {
		if c != nil {
			c.FillText(style, vg.Point{X: c.Min.X + margin + x, Y: c.Max.Y - y}, str)
		}
	}
	title := styleOf(titleSize, xfont.WeightBold)
	write(title, 0, fit(title, s.title, wide))
	y += rowHeight
	small := plain(smallSize)
	small.Color = dark
	write(small, 0, fit(small, s.subtitle, wide))
	small.Color = black
	for _, l := range s.legends {
		y += rowHeight
		x := vg.Length(0)
		if l.heading != "" {
			write(small, 0, l.heading)
			x = small.Width(l.heading) + 6
		}
		for _, k := range l.keys {
			name := fit(small, k.name, wide/2)
			step := k.width() + small.Width(name) + 3
			if x > 0 && x+step > wide {
				x, y = 0, y+rowHeight
			}
			if c != nil {
				k.draw(c, vg.Point{X: c.Min.X + margin + x, Y: c.Max.Y - y})
			}
			write(small, x+k.width(), name)
			x += step + k.gap()
		}
	}
	return y + 4
}

// Widths of a key that has one colour, of each of several, and of a line.
const (
	swatch = vg.Length(9)
	shade  = vg.Length(3.5)
	stroke = vg.Length(16)
)

// width is how far the name is from the key's left end.
func (k *key) width() vg.Length {
	switch {
	case k.line.Width > 0:
		return stroke + 3
	case len(k.fills) == 0:
		return 0
	}
	return k.boxes() + 3
}

func (k *key) boxes() vg.Length {
	if len(k.fills) == 1 {
		return swatch
	}
	return shade * vg.Length(len(k.fills))
}

// gap is the room behind a key: none on a scale of shades, which goes on.
func (k *key) gap() vg.Length {
	if len(k.fills) == 1 || k.line.Width > 0 {
		return 6
	}
	return 0
}

// draw paints the key's colours at a line of text.
func (k *key) draw(c *draw.Canvas, at vg.Point) {
	switch {
	case k.line.Width > 0:
		c.StrokeLine2(k.line, at.X, at.Y+2.5, at.X+stroke, at.Y+2.5)
		return
	case len(k.fills) == 0:
		return
	}
	step := k.boxes() / vg.Length(len(k.fills))
	for i, fill := range k.fills {
		box := vg.Rectangle{Min: at.Add(vg.Point{X: step * vg.Length(i)}), Max: at.Add(vg.Point{X: step * vg.Length(i+1), Y: 6})}
		c.SetColor(fill)
		c.Fill(box.Path())
	}
	c.SetLineStyle(hairline)
	c.Stroke(vg.Rectangle{Min: at, Max: at.Add(vg.Point{X: k.boxes(), Y: 6})}.Path())
}

var hairline = draw.LineStyle{Color: dark, Width: 0.3}

func (s *sheet) paint(c vg.CanvasSizer) {
	dc := draw.New(c)
	dc.SetColor(color.White)
	dc.Fill(dc.Path())
	s.draw(draw.Crop(dc, margin, -margin, margin, -s.top(&dc)))
}

// SVG writes the figure with text as text.
func (s *sheet) SVG(w io.Writer) error {
	c := vgsvg.New(s.width, s.height())
	s.paint(c)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	// The library names one font only. Arial and Helvetica have letters of the same
	// widths, for viewers that have no Liberation.
	out := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	_, err := w.Write(out)
	return err
}

// PNG writes the figure in print resolution.
func (s *sheet) PNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(s.width, s.height()), vgimg.UseDPI(dpi))
	s.paint(c)
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
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

// fit cuts the middle out of what is too wide: of "solver.c:88 (long_name)" both
// the place and the end of the name tell something. What cannot be printed, and
// would make an SVG invalid, is replaced.
func fit(style text.Style, s string, width vg.Length) string {
	s = printable(s)
	if style.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	least, most := 0, min(len(runes), 400) // no line has room for more letters
	for least < most {
		n := (least + most + 1) / 2
		if style.Width(cut(runes, n)) <= width {
			least = n
		} else {
			most = n - 1
		}
	}
	return cut(runes, least)
}

// cut keeps n letters of s, the larger half from its beginning.
func cut(s []rune, n int) string {
	tail := n * 2 / 5
	return string(s[:n-tail]) + "…" + string(s[len(s)-tail:])
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
