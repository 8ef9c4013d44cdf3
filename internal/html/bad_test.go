package html

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/report"
	"numaopt/internal/topo"
)

// many is a profile of objects × pages on a machine of nodes × cpus, each page used by
// each of some threads, all with the name that name makes.
func many(nodes, cpus, objects, pages, users int, name func(int) string) *profile.Profile {
	p := profiletest.Draw(nodes, cpus)
	for o := range objects {
		p.Objects = append(p.Objects, profile.Object{Kind: profile.Heap, Name: name(o), Site: o, Module: -1, Bytes: int64(pages) * 4096})
		p.Sites = append(p.Sites, profile.Site{})
		for i := range pages {
			page := int32(len(p.Pages))
			p.Pages = append(p.Pages, profile.Page{Object: o, Index: i, Home: topo.NodeID(i % nodes), Thread: 0, Region: profiletest.Work, Place: profiletest.Work})
			for u := range users {
				p.Rows = append(p.Rows, profile.Row{Page: page, Thread: int32((i + u*7) % len(p.Threads)), Region: profiletest.Work, Level: profile.DRAM, Count: uint64(1 + (objects-o)*(u+1))})
			}
		}
	}
	return p
}

func named(o int) string { return fmt.Sprintf("grid%d", o) }

// oneThread is a program of one thread on a machine of two nodes.
func oneThread() *profile.Profile {
	p := profiletest.Draw(2, 1, "u heap: 0 900 | 1 800")
	p.Threads = p.Threads[:1]
	return p
}

// evil are names that want to be more than names.
var evil = []string{
	`</script><img src=x onerror="hit=1"><script>hit=1</script>`,
	`"><img src=x onerror=hit=1>`, `' onmouseover='hit=1`, `{{.Run}} ${hit=1} <!--<script>`, "javascript:hit=1",
	strings.Repeat("Größe→尺寸🙂", 100), "\u2028\u2029\x00\x1b[31m", strings.Repeat("<&>", 333),
}

func evilProfile() *profile.Profile {
	p := many(2, 2, len(evil), 2, 2, func(o int) string { return evil[o] })
	for i, name := range evil[:3] {
		p.Regions[i].Name, p.Regions[i].File = name, name
		p.Places[i].Inlined[0].Function = name
	}
	p.Run.Command, p.Run.Host = []string{evil[0], evil[1]}, evil[0]
	p.Warnings = []string{evil[0]}
	p.Latencies = []profile.Latency{{Object: 0, Region: 1, Bucket: 5, Samples: 1, Accesses: 9, Cycles: 40}, {Object: 1, Region: 2, Bucket: 9, Samples: 1, Accesses: 9, Cycles: 80}}
	return p
}

func evilPlan(in *Input) {
	in.Plan, in.PlanIs, in.Next = richPlan(), evil[0], evil[0]
	in.Plan.Objects[0].Name, in.Plan.Loops[0].Name, in.Plan.Notes = evil[0], evil[1], evil
}

func TestBadInput(t *testing.T) {
	one := func(int) string { return "one" }
	for name, p := range map[string]*profile.Profile{
		"no samples":     profiletest.Draw(2, 1),
		"one thread":     oneThread(),
		"one node":       many(1, 4, 3, 8, 2, named),
		"one page":       profiletest.Draw(2, 1, "u heap: 0 900 9"),
		"one of all":     many(1, 1, 1, 1, 1, one),
		"512 threads":    many(8, 64, 3, 600, 20, named),
		"64 nodes":       many(64, 2, 3, 600, 20, named),
		"10,000 objects": many(2, 2, 10_000, 2, 2, named),
		"evil names":     evilProfile(),
	} {
		t.Run(name, func(t *testing.T) {
			page := written(t, p, nil)
			if len(page) > MaxBytes {
				t.Errorf("%d bytes", len(page))
			}
			b := open(t, page)
			if list := js[[]string](b, blank); len(list) > 0 {
				t.Errorf("blank: %v", list)
			}
			if verdict := js[string](b, `document.querySelector('h1').textContent`); verdict == "" {
				t.Error("no verdict")
			}
			b.quiet()
		})
	}
}

// Names are text wherever they stand: no element and no handler comes of them.
func TestNamesAreText(t *testing.T) {
	b := open(t, written(t, evilProfile(), evilPlan))
	for i := range min(4, js[int](b, `document.getElementById('heat-object').options.length`)) {
		b.do(choose("heat-object", fmt.Sprint(i)))
	}
	if js[bool](b, `'hit' in window`) {
		t.Error("a name was executed")
	}
	if n := js[int](b, `document.querySelectorAll('img, iframe, [onerror], [onmouseover], base').length`); n > 0 {
		t.Errorf("%d elements came of names", n)
	}
	if n := js[int](b, `document.querySelectorAll('script').length`); n != 4 { // data, ECharts twice, page.js
		t.Errorf("%d scripts", n)
	}
	if seen := js[[]string](b, shown("objects")); !strings.Contains(strings.Join(seen, ""), evil[0]) {
		t.Errorf("the name is not shown as it is: %q", seen)
	}
	b.quiet()
}

// The policy of a page stops what escaping would have let through.
func TestPolicy(t *testing.T) {
	page := strings.Replace(string(written(t, rich(), nil)), "</main>", `<script>hit = 1</script><img src="https://example.org/x.png"></main>`, 1)
	b := open(t, []byte(page))
	if js[bool](b, `'hit' in window`) {
		t.Error("another's script was executed")
	}
}

// However large the profile, the page is small, and says what it leaves out.
func TestSize(t *testing.T) {
	long := strings.Repeat("ж<", 500)
	for name, p := range map[string]*profile.Profile{
		"10,000 objects":            many(2, 2, 10_000, 2, 2, named),
		"long names":                many(2, 2, 2000, 2, 2, func(o int) string { return fmt.Sprint(o, long) }),
		"every thread on each page": many(8, 64, 50, 400, 512, named),
	} {
		page := written(t, p, nil)
		d := embedded(t, page)
		t.Logf("%s: %d bytes, %d maps", name, len(page), len(d.Heat))
		if len(page) > MaxBytes*2/3 {
			t.Errorf("%s: %d bytes", name, len(page))
		}
		if len(d.Heat) < 5 {
			t.Errorf("%s: %d maps", name, len(d.Heat))
		}
		if strings.Contains(name, "0 objects") && !strings.Contains(string(page), "9700 more are left out, each with") {
			t.Errorf("%s: the page does not say what it leaves out", name)
		}
	}
}

// The accesses of maps add up to those of their objects.
func TestHeatIsComplete(t *testing.T) {
	p := many(4, 8, 30, 300, 32, named)
	r, err := report.Build(p, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range embedded(t, written(t, p, nil)).Heat {
		var sum, pages num
		for _, row := range m.Rows {
			for i := 1; i < len(row); i += 3 {
				sum += row[i]
			}
		}
		for _, row := range m.Homes {
			for i := 1; i < len(row); i += 2 {
				pages += row[i]
			}
		}
		want := num(r.Objects[m.Object].DRAMAccesses)
		if d := float64((sum - want) / want); d < -0.005 || d > 0.005 || pages != 300 || r.Objects[m.Object].Name != m.Name {
			t.Errorf("%s: %v DRAM accesses and %v pages, want %v and 300", m.Name, sum, pages, want)
		}
	}
}

// full is a disk that is.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestFullDisk(t *testing.T) {
	r, err := report.Build(rich(), report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(full{}, &Input{Profile: rich(), Report: r}); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

// BenchmarkWrite: the page of 10⁷ rows, its report not counted.
func BenchmarkWrite(b *testing.B) {
	p := many(4, 16, 10_000, 100, 10, named)
	r, err := report.Build(p, report.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if err := Write(io.Discard, &Input{Profile: p, Report: r}); err != nil {
			b.Fatal(err)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
}

// BenchmarkFirstPaint: a page is to be painted in at most five times what one without
// content takes. Both take their turns, since the machine may have other work.
func BenchmarkFirstPaint(b *testing.B) {
	empty := []byte(`<!DOCTYPE html><html data-drawn="yes"><title>empty</title><p>empty</p>`)
	for name, page := range map[string][]byte{
		"rich":    written(b, rich(), withPlan),
		"largest": written(b, many(8, 64, 10_000, 20, 40, named), withPlan),
	} {
		b.Run(name, func(b *testing.B) {
			var none, full, drawn []float64
			for range b.N {
				none = append(none, painted(b, open(b, empty)))
				t := open(b, page)
				full = append(full, painted(b, t))
				drawn = append(drawn, js[float64](t, `performance.getEntriesByName('drawn')[0].startTime`))
			}
			b.ReportMetric(median(none), "empty-ms")
			b.ReportMetric(median(full), "paint-ms")
			b.ReportMetric(median(drawn), "drawn-ms")
			b.ReportMetric(median(full)/median(none), "times-empty")
		})
	}
}

// painted is when a page was first painted, in milliseconds from the request.
func painted(b *testing.B, t *tab) float64 {
	at, err := chromedp.Run(t.ctx, chromedp.Evaluate[float64](
		`new Promise(done => new PerformanceObserver(l => done(l.getEntries()[0].startTime)).observe({type: 'paint', buffered: true}))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	return at
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
