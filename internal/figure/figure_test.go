package figure

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/recorder"

	"numaopt/internal/access"
	"numaopt/internal/golden"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/report"
	"numaopt/internal/topo"
)

// of is the input of p.
func of(t testing.TB, p *profile.Profile) *Input {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	r, err := report.Build(p, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &Input{Profile: p, Report: r}
}

// drawn has serial initialisation, a page that every node uses, one that nobody knows,
// and a stack.
func drawn() *profile.Profile {
	return profiletest.Draw(2, 2,
		"u heap: 0!2 50 30 0 0 | 0!2 50 0 0 1 | 0!2 0 0 60/10 0 20 | 0!2 0 0 2 70",
		"v global: 0 9 8 7 6 | ? 0 0 0 2 | | 1 0 0 4 0",
		"main stack: 0 5")
}

// timed has latencies and intervals too.
func timed() *profile.Profile {
	p := profiletest.WithCode(drawn())
	for _, x := range []struct {
		served   profile.Served
		from, to topo.NodeID
		cycles   uint64
		n        uint64
	}{
		{profile.ServedL1, 0, topo.Unknown, 4, 500}, {profile.ServedL3, 1, topo.Unknown, 40, 200},
		{profile.ServedLocalDRAM, 0, 0, 200, 150}, {profile.ServedRemoteDRAM, 0, 1, 410, 120}, {profile.ServedRemoteDRAM, 1, 0, 900, 3},
	} {
		p.Latencies = append(p.Latencies, profile.Latency{
			Region: profiletest.Work, Served: x.served, From: x.from, To: x.to, Bucket: profile.LatencyBucket(x.cycles),
			Samples: x.n, Accesses: x.n, Cycles: x.n * x.cycles,
		})
	}
	return p
}

// pages repeats a picture of a page.
func pages(n int, page func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = page(i)
	}
	return strings.Join(list, " | ")
}

// wide has an object for each of n threads, of nodes nodes.
func wide(nodes, cpus, objects int) *profile.Profile {
	var lines []string
	n := nodes * cpus
	for i := range objects {
		lines = append(lines, fmt.Sprintf("o%d heap: 0 %s %d", i, strings.Repeat("0 ", i%n), i+1))
	}
	lines = append(lines, "u heap: "+pages(n, func(i int) string {
		return fmt.Sprintf("%d %s 100000", i*nodes/n, strings.Repeat("0 ", i))
	}))
	return profiletest.WithCode(profiletest.Draw(nodes, cpus, lines...))
}

// named has its names replaced.
func named(name string) *profile.Profile {
	p := timed()
	for i := range p.Objects {
		p.Objects[i].Name = name
	}
	for i := range p.Regions {
		p.Regions[i].Name = name
	}
	p.Run.Command = []string{name}
	return p
}

const timedNames = "sharing accesses matrix heatmap latency-cdf latency-ranges timeline"

var cases = []struct {
	name string
	p    func() *profile.Profile
	want string // the figures that there are
}{
	{"counted", drawn, "sharing accesses matrix heatmap"},
	{"sampled", timed, timedNames},
	{"no samples", func() *profile.Profile { return profiletest.Draw(2, 2) }, ""},
	{"pages without accesses", func() *profile.Profile { return profiletest.Draw(2, 1, "u heap: 0 | 1") }, ""},
	{"one node", func() *profile.Profile { return profiletest.WithCode(profiletest.Draw(1, 1, "u heap: 0 5 | 0 9")) }, "sharing accesses matrix heatmap timeline"},
	{"one page", func() *profile.Profile { return profiletest.Draw(2, 1, "u heap: 0 5 1") }, "sharing accesses matrix heatmap"},
	{"homes not known", func() *profile.Profile { return profiletest.Draw(2, 1, "u heap: ? 5 1") }, "sharing accesses heatmap"},
	{"stacks only", func() *profile.Profile { return profiletest.Draw(2, 1, "main stack: 0 5 1") }, "sharing accesses matrix"},
	{"512 threads", func() *profile.Profile { return wide(8, 64, 0) }, "sharing accesses matrix heatmap timeline"},
	{"64 nodes", func() *profile.Profile { return wide(64, 1, 3) }, "sharing accesses matrix heatmap timeline"},
	{"10,000 objects", func() *profile.Profile { return wide(2, 2, 10000) }, "sharing accesses matrix heatmap timeline"},
	{"long names", func() *profile.Profile { return named(strings.Repeat("solve_", 200)) }, timedNames},
	{"UTF-8", func() *profile.Profile { return named("größe_Ωμέγα_データ_" + strings.Repeat("界", 300)) }, timedNames},
	{"HTML", func() *profile.Profile { return named(`</text><script>alert("1")</script>&'` + "\x00\x1b\n\xff") }, timedNames},
}

// TestFigures: each is a valid SVG that fits on paper, the same every time, for any
// profile by itself and beside another.
func TestFigures(t *testing.T) {
	other := of(t, timed())
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := of(t, c.p())
			figures, missing := Of(in, DefaultOptions())
			if got := names(figures); got != c.want {
				t.Errorf("figures: %s; want %s", got, c.want)
			}
			said := len(figures)
			for _, m := range missing {
				said += len(m.Names)
			}
			if said != len(kinds)-1 { // before-after was not asked for
				t.Errorf("figures are neither there nor said to be missing: %v", missing)
			}
			in.Before = other
			compared, _ := Of(in, DefaultOptions())
			for _, f := range append(figures, compared...) {
				checkSVG(t, f)
				checkText(t, f)
			}
			again, _ := Of(of(t, c.p()), DefaultOptions())
			for i := range again {
				if !bytes.Equal(svg(t, figures[i]), svg(t, again[i])) {
					t.Errorf("%s.svg is another the second time", again[i].Name)
				}
			}
		})
	}
}

// TestPNG: the PNG is of the same drawing; it takes its time.
func TestPNG(t *testing.T) {
	first, _ := Of(of(t, timed()), DefaultOptions())
	again, _ := Of(of(t, timed()), DefaultOptions())
	for i, f := range first {
		data := raster(t, f)
		c, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s.png: %v", f.Name, err)
		}
		if c.Width != 1004 && c.Width != 2008 || c.Height < 200 {
			t.Errorf("%s.png is %d × %d: not a column's or a page's width at 300 dpi", f.Name, c.Width, c.Height)
		}
		if !bytes.Equal(data, raster(t, again[i])) {
			t.Errorf("%s.png is another the second time", f.Name)
		}
	}
}

func names(figures []Figure) string {
	var list []string
	for _, f := range figures {
		list = append(list, f.Name)
	}
	return strings.Join(list, " ")
}

func svg(t *testing.T, f Figure) []byte {
	var b bytes.Buffer
	if err := f.SVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func raster(t *testing.T, f Figure) []byte {
	var b bytes.Buffer
	if err := f.PNG(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var fontSize = regexp.MustCompile(`font-size:([0-9.]+)px`)

// checkSVG: well-formed, small, with its title as text, no element but those that draw,
// and no letter of less than 7 points.
func checkSVG(t *testing.T, f Figure) {
	t.Helper()
	data := svg(t, f)
	if len(data) > 500_000 {
		t.Errorf("%s.svg has %d bytes", f.Name, len(data))
	}
	elements := map[string]bool{}
	text := ""
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s.svg: %v", f.Name, err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			elements[x.Name.Local] = true
		case xml.CharData:
			text += string(x)
		}
	}
	if f.width > pageWidth || f.height() > 25*vg.Centimeter {
		t.Errorf("%s.svg is larger than a page: %.0f × %.0f points", f.Name, f.width, f.height())
	}
	if !strings.Contains(text, f.title) {
		t.Errorf("%s.svg lacks the text of its title, %q", f.Name, f.title)
	}
	for name := range elements {
		if !slices.Contains([]string{"svg", "g", "path", "text"}, name) {
			t.Errorf("%s.svg has a %s", f.Name, name)
		}
	}
	if texts, measured := bytes.Count(data, []byte("<text ")), bytes.Count(data, []byte("<text textLength=")); texts != measured {
		t.Errorf("%s.svg: %d of %d texts say how wide they are", f.Name, measured, texts)
	}
	for _, m := range fontSize.FindAllSubmatch(data, -1) {
		if size, err := strconv.ParseFloat(string(m[1]), 64); err != nil || size < 7 {
			t.Errorf("%s.svg has text of %s points", f.Name, m[1])
		}
	}
}

// checkText: no text leaves the paper.
func checkText(t *testing.T, f Figure) {
	t.Helper()
	var c recorder.Canvas
	f.paint(sized{&c, f})
	turned := 0
	for _, a := range c.Actions {
		switch a := a.(type) {
		case *recorder.Rotate:
			turned++
		case *recorder.Pop:
			turned = 0
		case *recorder.FillString:
			style := plain(a.Size)
			style.Font = a.Font
			if wide := style.Width(a.String); turned == 0 && (a.Point.X < 0 || a.Point.X+wide > f.width+0.1 || a.Point.Y < 0 || a.Point.Y > f.height()) {
				t.Errorf("%s: %q at %.0f, %.0f leaves the paper", f.Name, a.String, a.Point.X, a.Point.Y)
			}
		}
	}
}

// sized is a canvas of a figure's size.
type sized struct {
	vg.Canvas
	f Figure
}

func (s sized) Size() (vg.Length, vg.Length) { return s.f.width, s.f.height() }

// TestGolden holds the drawing of some figures.
func TestGolden(t *testing.T) {
	in := of(t, timed())
	in.Before = of(t, drawn())
	figures, _ := Of(in, DefaultOptions())
	for _, f := range figures {
		if f.Name == "heatmap" || f.Name == "before-after" || f.Name == "timeline" {
			golden.Compare(t, "testdata/"+f.Name+".svg", svg(t, f))
		}
	}
}

// TestScale: shades go from light to dark, and local and remote differ without colour.
// TestNamelessLoops: the timeline's legend tells loops without names apart.
func TestNamelessLoops(t *testing.T) {
	p := drawn()
	var loops []int
	for i := range p.Regions {
		p.Regions[i].Name = ""
		loops = append(loops, i)
	}
	var got []string
	for _, k := range loopLegend(&Input{Profile: p}, loops).keys {
		got = append(got, k.name)
	}
	if want := "init.c:1 (main), work.c:20 (work), work.c:30 (back), others"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestScale(t *testing.T) {
	for i := 1; i < len(heatFills); i++ {
		if lightness(heatFills[i]) >= lightness(heatFills[i-1]) {
			t.Errorf("shade %d is not darker than %d", i, i-1)
		}
	}
	if lightness(orange)-lightness(blue) < 0.2 {
		t.Error("local and remote look alike in grey")
	}
	for _, c := range []struct{ part, whole, want uint64 }{{1, 1, 23}, {1, 10, 16}, {1, 100, 8}, {1, 1000, 0}, {1, 1e9, 0}} {
		if got := heatClass(c.part, c.whole); got != int(c.want) {
			t.Errorf("%d of %d has shade %d, want %d", c.part, c.whole, got, c.want)
		}
	}
	if heatClass(0, 5) != -1 || heatClass(0, 0) != -1 {
		t.Error("nothing has a shade")
	}
}

func TestFit(t *testing.T) {
	style := plain(smallSize)
	for _, c := range []struct{ in, want string }{
		{"u", "u"},
		{"solver.c:88 (an_even_longer_name_of_it)", "solver.c:88 …name_of_it)"},
		{"a\x00b\xffc\td", "a?b?c?d"},
	} {
		if got := fit(style, c.in, 80); got != c.want {
			t.Errorf("%q is cut to %q, want %q", c.in, got, c.want)
		}
	}
	if got := fit(style, strings.Repeat("x", 1e6), 1); got != "…" {
		t.Errorf("no room at all leaves %q", got)
	}
}

// TestPairs: objects of both runs are matched by name, small ones are one entry, and
// everything adds up to all.
func TestPairs(t *testing.T) {
	before := profiletest.Draw(2, 1, "u heap: 0 1 900", "gone heap: 0 0 90", "s heap: 0 0 1", "r heap: 1 0 1")
	after := profiletest.Draw(2, 1, "new heap: 1 50 0", "u heap: 1 1 900")
	got := ""
	for _, x := range pairs(before, after, DefaultOptions()) {
		got += fmt.Sprintf("%s %d/%d→%d/%d\n", x.name, x.before.Remote, x.before.Total(), x.after.Remote, x.after.Total())
	}
	want := "all 991/993→51/951\nu 900/901→1/901\ngone 90/90→0/0\nnew 0/0→50/50\nothers (2) 1/2→0/0\n"
	if got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestAccesses: a bar for each node, the last for all that are left, and of two runs in turn.
func TestAccesses(t *testing.T) {
	list := []access.Flow{{Local: 1}, {Remote: 2}, {Local: 3, Remote: 4}}
	names, out := capped(list, 2)
	if d := cmp.Diff([]access.Flow{{Local: 1}, {Local: 3, Remote: 6}}, out); d != "" || names[1] != "nodes 1–2" {
		t.Errorf("%v: %s", names, d)
	}
	in := of(t, drawn())
	in.Before = of(t, drawn())
	s, _ := accesses(in, DefaultOptions())
	text := string(svg(t, Figure{"accesses", s}))
	for _, name := range []string{">node 0, before<", ">node 1<"} {
		if !strings.Contains(text, name) {
			t.Errorf("no bar %s", name)
		}
	}
}

// TestTicks: nodes are named as far as there is room.
func TestTicks(t *testing.T) {
	nodes := make([]int, 64)
	for i := range nodes {
		nodes[i] = i
	}
	last := 1e9
	for _, tick := range bandTicks(nodes, 100) {
		if at := tick.Value * 100 / 64; last-at < rowHeight {
			t.Errorf("%s is %.1f points below the one above", tick.Label, last-at)
		} else {
			last = at
		}
	}
	if got := len(bandTicks([]int{0, 0, 1, 1}, 100)); got != 2 {
		t.Errorf("%d names of 2 nodes", got)
	}
	if got := nodeTicks(40, false); len(got) != 14 || got[1].Label != "3" {
		t.Errorf("ticks of 40 nodes: %v", got)
	}
}

// TestDistribution: a line is level where there are no loads.
func TestDistribution(t *testing.T) {
	timing := report.Timing{CDF: [][2]report.Pct{{4, 50}, {5, 60}, {208, 100}}}
	got := ""
	for _, xy := range distribution(&timing) {
		got += fmt.Sprintf("%.1f:%.0f ", xy.X, xy.Y)
	}
	if want := "3.7:0 4.0:50 5.0:60 190.7:60 208.0:100 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// BenchmarkFigures draws 10⁷ rows.
func BenchmarkFigures(b *testing.B) {
	p := big(10_000_000)
	in := of(b, p)
	for b.Loop() {
		figures, _ := Of(in, DefaultOptions())
		for _, f := range figures {
			if err := f.SVG(io.Discard); err != nil {
				b.Fatal(err)
			}
			if err := f.PNG(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// big is n rows of 100 objects.
func big(n int) *profile.Profile {
	p := profiletest.Draw(4, 16)
	const objects = 100
	threads := len(p.Threads)
	perPage := threads
	per := n / perPage / objects
	for o := range objects {
		p.Objects = append(p.Objects, profile.Object{Name: fmt.Sprint("o", o), Kind: profile.Heap, Site: -1, Module: -1, Bytes: int64(per) * 4096})
		for i := range per {
			p.Pages = append(p.Pages, profile.Page{Object: o, Index: i, Home: topo.NodeID(i % 4), Thread: -1, Region: -1, Place: -1})
			for t := range threads {
				p.Rows = append(p.Rows, profile.Row{Page: int32(len(p.Pages) - 1), Thread: int32(t), Region: profiletest.Work, Level: profile.DRAM, Count: uint64(1 + (i*t)%97)})
			}
		}
	}
	return p
}

func lightness(c interface{ RGBA() (r, g, b, a uint32) }) float64 {
	r, g, b, _ := c.RGBA()
	return (0.2126*float64(r) + 0.7152*float64(g) + 0.0722*float64(b)) / 0xffff
}
