package figure

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"numaopt/internal/report"
)

const noLatencies = "the profile has no latencies; samples of perf mem have them"

// curve is one line of a cumulative distribution.
type curve struct {
	timing *report.Timing
	line   draw.LineStyle
}

// latencyCDF is how long loads took (work-time inflation, figs. 14 and 16).
func latencyCDF(in *Input, _ Options) (*sheet, string) {
	l := in.Report.Latency
	if l == nil {
		return nil, noLatencies
	}
	s := &sheet{title: "Latency of loads", width: columnWidth, body: 5 * vg.Centimeter, legends: []legend{{}}}
	var curves []curve
	add := func(t *report.Timing, name string, line draw.LineStyle) {
		if len(t.CDF) > 0 {
			curves = append(curves, curve{t, line})
			s.legends[0].keys = append(s.legends[0].keys, key{name: name, line: line})
		}
	}
	add(&l.All, "all", draw.LineStyle{Color: black, Width: 1.5})
	if b := in.Before; b != nil && b.Report.Latency != nil {
		add(&b.Report.Latency.All, "all, before", draw.LineStyle{Color: dark, Width: 1.5, Dashes: []vg.Length{1, 1.5}})
	}
	for i := range l.Levels {
		dashes := [][]vg.Length{nil, {4, 1.5}, {1.5, 1.5}}[i%3]
		add(&l.Levels[i], l.Levels[i].Name, draw.LineStyle{Color: distinct[i%len(distinct)], Width: 1, Dashes: dashes})
	}
	s.draw = func(c draw.Canvas) { drawCDF(c, curves) }
	return s, ""
}

func drawCDF(c draw.Canvas, curves []curve) {
	p := newPlot("latency (cycles)", "loads that took no longer (%)")
	p.Add(&frame{})
	p.X.Scale = plot.LogScale{}
	for _, k := range curves {
		p.Add(&plotter.Line{XYs: distribution(k.timing), LineStyle: k.line})
	}
	p.Y.Min, p.Y.Max = 0, 100
	p.Y.Tick.Marker = percentTicks
	p.X.Min, p.X.Max = math.Exp2(math.Floor(math.Log2(p.X.Min))), math.Exp2(math.Ceil(math.Log2(p.X.Max)))
	if p.X.Min == p.X.Max {
		p.X.Max *= 2
	}
	p.X.Tick.Marker = octaves{}
	p.Draw(c)
}

// distribution is the points of t's line: it rises over the eighth of an octave that a
// bucket is wide, or the cycle, and is level where buckets are empty.
func distribution(t *report.Timing) (xys plotter.XYs) {
	bucket := math.Exp2(1.0 / 8)
	last := plotter.XY{}
	for _, pt := range t.CDF {
		at := plotter.XY{X: max(1, float64(pt[0])), Y: float64(pt[1])}
		if at.X > last.X*bucket*1.1 && at.X > last.X+1 {
			xys = append(xys, plotter.XY{X: max(1, at.X/bucket), Y: last.Y})
		}
		xys = append(xys, at)
		last = at
	}
	return xys
}

// octaves are ticks at powers of 2, as many as have room.
type octaves struct{}

func (octaves) Ticks(least, most float64) (ticks []plot.Tick) {
	first, last := int(math.Round(math.Log2(least))), int(math.Round(math.Log2(most)))
	every := (last-first)/9 + 1
	for i := first; i <= last; i++ {
		t := plot.Tick{Value: math.Exp2(float64(i))}
		if (i-first)%every == 0 {
			t.Label = fmt.Sprintf("%.0f", t.Value)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// frame is light lines at the labelled ticks.
type frame struct{}

func (frame) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	line := draw.LineStyle{Color: grey, Width: 0.3}
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if !t.IsMinor() {
			c.StrokeLine2(line, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
		}
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		c.StrokeLine2(line, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
	}
}

// ranges are the latencies that work-time inflation's fig. 15 tells apart.
var ranges = []struct {
	most uint64
	name string
}{{16, "1–16"}, {32, "17–32"}, {64, "33–64"}, {128, "65–128"}, {256, "129–256"}, {512, "257–512"}, {math.MaxUint64, "> 512"}}

// latencyRanges is the share of short and long loads in all latency (work-time
// inflation, figs. 15 and 17).
func latencyRanges(in *Input, opt Options) (*sheet, string) {
	l := in.Report.Latency
	if l == nil {
		return nil, noLatencies
	}
	b := &bars{axis: "share of the latency (%)", max: 100, ticks: percentTicks, numbers: true}
	for i, fill := range yellowToBlue(len(ranges) + 1) {
		b.parts = append(b.parts, part{name: ranges[i].name, fill: fill})
	}
	if before := in.Before; before != nil && before.Report.Latency != nil {
		b.addRanges(&before.Report.Latency.All, "all, before")
	}
	b.addRanges(&l.All, "all")
	for _, list := range []struct {
		heading string
		of      []report.Timing
	}{{"by object:", l.Objects}, {"by loop:", l.Loops}} {
		b.addRanges(&report.Timing{}, list.heading)
		for i := range list.of[:min(len(list.of), opt.Names)] {
			b.addRanges(&list.of[i], list.of[i].Name)
		}
	}
	s := b.sheet("Latency by length of the loads")
	s.legends[0].heading = "cycles:"
	return s, ""
}

// addRanges adds the bar of t.
func (b *bars) addRanges(t *report.Timing, name string) {
	b.names = append(b.names, name)
	at := len(b.names) - 1
	for i := range b.parts {
		b.parts[i].values = append(b.parts[i].values, 0)
	}
	for _, r := range t.Ranges {
		i := 0
		for ranges[i].most < r.Most {
			i++
		}
		b.parts[i].values[at] += float64(r.Share)
	}
}
