package figure

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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

// pen writes lines of text from the top of a sheet down. Without a canvas it only
// measures.
type pen struct {
	c    *draw.Canvas
	wide vg.Length
	x, y vg.Length // from the left and upper margin
}

// down begins a line.
func (p *pen) down() { p.x, p.y = 0, p.y+rowHeight }

func (p *pen) at() vg.Point { return vg.Point{X: p.c.Min.X + margin + p.x, Y: p.c.Max.Y - p.y} }

func (p *pen) write(style text.Style, str string) {
	if p.c != nil {
		p.c.FillText(style, p.at(), str)
	}
	p.x += style.Width(str)
}

func (p *pen) line(style text.Style, str string) {
	p.down()
	p.write(style, fit(style, str, p.wide))
}

func (p *pen) legend(l *legend) {
	p.down()
	if l.heading != "" {
		p.write(plain(smallSize), l.heading)
		p.x += 6
	}
	for i := range l.keys {
		p.key(&l.keys[i])
	}
}

func (p *pen) key(k *key) {
	style := plain(smallSize)
	name := fit(style, k.name, p.wide-k.width())
	if p.x > 0 && p.x+k.width()+style.Width(name) > p.wide {
		p.down()
	}
	if p.c != nil {
		k.draw(p.c, p.at())
	}
	p.x += k.width()
	p.write(style, name)
	p.x += 3 + k.gap()
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
