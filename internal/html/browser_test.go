package html

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tab is a page in headless Chromium, and what it should not have done.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	faults []string // console output, exceptions, requests
	ended  chan bool
}

// theEnd is what a test itself prints, so that nothing printed before it is missed.
const theEnd = "the end"

// action is something that a person or a test does to a page.
type action = chromedp.Action[chromedp.Void]

// browser starts Chromium once for all tests; TestMain ends it.
var browser = sync.OnceValues(func() (context.Context, error) {
	// Root, which containers run as, has no sandbox.
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	closeBrowser = func() {
		chromedp.Cancel(ctx) //nolint:errcheck // it is the end, and lets Chromium clean up
		cancel()
		stop()
	}
	return ctx, chromedp.Do(ctx)
})

var closeBrowser = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

// open writes a page to a file, opens it and waits until it is drawn.
func open(t testing.TB, page []byte, before ...action) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	parent, err := browser()
	if err != nil {
		t.Fatalf("chromium (scripts/setup test installs it): %v", err)
	}
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute) // of a busy machine
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, ended: make(chan bool, 1)}
	b.watch("file://" + file)
	b.do(before...)
	b.do(chromedp.Navigate("file://"+file), chromedp.WaitReady(chromedp.CSS("html[data-drawn=yes]")))
	return b
}

// watch notes what a page must not do: print, throw, ask the network.
func (b *tab) watch(own string) {
	b.t.Helper()
	fault := func(format string, args ...any) {
		b.mu.Lock()
		b.faults = append(b.faults, fmt.Sprintf(format, args...))
		b.mu.Unlock()
	}
	go func(printed iter.Seq2[chromedp.ConsoleMessage, error]) {
		for m, err := range printed {
			switch {
			case err != nil:
			case m.Text == theEnd:
				b.ended <- true
			default:
				fault("console: %v", m)
			}
		}
	}(chromedp.Console(b.ctx))
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	err := chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok && e.Request.URL != own {
			fault("request: %s", e.Request.URL)
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) do(actions ...action) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.report()
		b.t.Fatal(err)
	}
}

// quiet fails the test for each fault of the page up to now.
func (b *tab) quiet() {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void]("console.log('" + theEnd + "')"))
	select {
	case <-b.ended:
	case <-b.ctx.Done():
	}
	b.report()
}

func (b *tab) report() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Error(f)
	}
	b.faults = nil
}

// js is the value of an expression.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.report()
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func click(selector string) action { return chromedp.Click(chromedp.CSS(selector)) }

// blank is the ids of charts without at least five colours.
const blank = `[...document.querySelectorAll('.chart')].filter(c => {
	const seen = new Set();
	for (const canvas of c.querySelectorAll('canvas')) {
		const d = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
		for (let i = 0; i < d.length; i += 4 * 7) seen.add((d[i] << 16) + (d[i + 1] << 8) + d[i + 2] + 256 * d[i + 3]);
	}
	return seen.size < 5;
}).map(c => c.id)`

func TestCharts(t *testing.T) {
	b := open(t, written(t, rich(), withPlan))
	ids := js[[]string](b, `[...document.querySelectorAll('.chart')].map(c => c.id)`)
	if want := []string{"heat-chart", "matrix-chart", "cdf-chart", "share-chart", "timeline-chart"}; !slices.Equal(ids, want) {
		t.Errorf("charts %v, want %v", ids, want)
	}
	if list := js[[]string](b, blank); len(list) > 0 {
		t.Errorf("blank: %v", list)
	}
	if labels := js[int](b, `document.querySelectorAll('.chart[aria-label]').length`); labels != len(ids) {
		t.Errorf("%d of %d charts have a description", labels, len(ids))
	}
	if drawn := js[string](b, `document.querySelector('#heat-chart').getAttribute('aria-label')`); !strings.Contains(drawn, "Heatmap of ") {
		t.Errorf("heatmap: %q", drawn)
	}
	b.quiet()
}

// picture is what a chart shows, to tell whether it changed.
func picture(id string) string {
	return fmt.Sprintf(`document.querySelector('#%s canvas').toDataURL()`, id)
}

// choose is a person's choice in a select.
func choose(id, value string) action {
	return chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => { const s = document.getElementById('%s'); s.value = '%s'; s.dispatchEvent(new Event('change')); })()`, id, value))
}

func TestHeatmapZoom(t *testing.T) {
	b := open(t, written(t, rich(), nil))
	whole := js[string](b, `document.getElementById('heat-range').textContent`)
	if whole != "0 B to 1 MiB of 1 MiB, 4 pages a tile" {
		t.Errorf("range %q", whole)
	}
	first := js[string](b, picture("heat-chart"))
	b.do(click("#heat-in"), click("#heat-in"))
	if at := js[string](b, `document.getElementById('heat-range').textContent`); at != "384 KiB to 640 KiB of 1 MiB, page by page" {
		t.Errorf("zoomed in: %q", at)
	}
	if js[string](b, picture("heat-chart")) == first {
		t.Error("the picture is the same, zoomed in")
	}
	b.do(click("#heat-down"))
	if at := js[string](b, `document.getElementById('heat-range').textContent`); at != "512 KiB to 768 KiB of 1 MiB, page by page" {
		t.Errorf("down: %q", at)
	}
	b.do(click("#heat-whole"))
	if js[string](b, picture("heat-chart")) != first || !js[bool](b, `document.getElementById('heat-out').disabled`) {
		t.Error("the whole object is not what it was")
	}
	// A bar is a tile's homes on one node: its value is a number of pages.
	b.do(chromedp.Evaluate[chromedp.Void](`(() => { echarts.getInstanceByDom(document.getElementById('heat-chart')).trigger('click', {seriesType: 'bar', dataIndex: 32, value: 4}); })()`))
	if at := js[string](b, `document.getElementById('heat-range').textContent`); at != "448 KiB to 576 KiB of 1 MiB, page by page" {
		t.Errorf("at the homes of tile 32: %q", at)
	}
	b.do(click("#heat-whole"))
	for id, value := range map[string]string{"heat-axis": "node", "heat-object": "1"} {
		b.do(choose(id, value))
		if js[string](b, picture("heat-chart")) == first {
			t.Errorf("%s changes nothing", id)
		}
	}
	// Choosing a row of the table shows its map.
	b.do(click(`.pick[data-object="1"]`))
	if chosen := js[string](b, `document.getElementById('heat-object').value`); chosen != "0" {
		t.Errorf("object %q is shown", chosen)
	}
	b.quiet()
}

func TestLatencyFilters(t *testing.T) {
	b := open(t, written(t, rich(), nil))
	all := js[string](b, `document.getElementById('latency-sum').textContent`)
	for _, f := range []string{"object", "loop", "level"} {
		before, share := js[string](b, picture("cdf-chart")), js[string](b, picture("share-chart"))
		last := js[string](b, fmt.Sprintf(`document.querySelector('#latency-%s option:last-child').value`, f))
		b.do(choose("latency-"+f, last))
		if js[string](b, picture("cdf-chart")) == before || js[string](b, picture("share-chart")) == share || js[string](b, `document.getElementById('latency-sum').textContent`) == all {
			t.Errorf("the filter by %s changes nothing", f)
		}
	}
	b.do(choose("latency-object", ""), choose("latency-loop", ""), choose("latency-level", ""))
	if now := js[string](b, `document.getElementById('latency-sum').textContent`); now != all || !strings.HasPrefix(all, "20M loads") {
		t.Errorf("without filters %q, at first %q", now, all)
	}
	b.quiet()
}

// shown is the first cells of a table's rows that are not hidden.
func shown(table string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('#t-%s tbody tr:not([hidden])')].map(r => r.cells[0].textContent.trim())`, table)
}

// tabular has forty objects, their names not in the order of their accesses.
func tabular() []string {
	var list []string
	for i := range 40 {
		list = append(list, fmt.Sprintf("o%02d heap: %d %d 5", i*7%40, i%2, 1000-20*i))
	}
	return list
}

func TestTables(t *testing.T) {
	b := open(t, written(t, drawn(2, 1, tabular()...), nil))
	if list := js[[]string](b, shown("objects")); len(list) != 15 || list[0] != "o00" || list[1] != "o07" {
		t.Errorf("at first: %v", list)
	}
	head := `#t-objects thead th:nth-child(%d) button`
	b.do(click(fmt.Sprintf(head, 1)))
	if list := js[[]string](b, shown("objects")); list[0] != "o00" || list[1] != "o01" {
		t.Errorf("by name: %v", list)
	}
	b.do(click(fmt.Sprintf(head, 4)), click(fmt.Sprintf(head, 4)))
	if list := js[[]string](b, shown("objects")); list[0] != "o33" || js[string](b, `document.querySelector('#t-objects th:nth-child(4)').ariaSort`) != "ascending" {
		t.Errorf("by DRAM accesses, least first: %v", list)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#t-objects input"), "O1 heap"))
	if list := js[[]string](b, shown("objects")); len(list) != 10 || !strings.HasPrefix(list[0], "o1") {
		t.Errorf("filtered: %v", list)
	}
	if status := js[string](b, `document.querySelector('#t-objects [role=status]').textContent`); status != "10 of 40 rows" {
		t.Errorf("status %q", status)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#t-objects input"), strings.Repeat(kb.Backspace, 7)), click("#t-objects .more"))
	if list := js[[]string](b, shown("objects")); len(list) != 40 || js[bool](b, `!document.querySelector('#t-objects .more').hidden`) {
		t.Errorf("more: %d rows", len(list))
	}
	b.quiet()
}

// All is reached with the tabulator, is seen when it has the focus, and works by Enter.
func TestKeyboard(t *testing.T) {
	b := open(t, written(t, rich(), nil))
	key := func(keys string) { b.do(chromedp.KeyEvent(keys)) }
	key(kb.Tab)
	if text := js[string](b, `document.activeElement.textContent`); text != "Skip to the verdict" {
		t.Errorf("the first stop is %q", text)
	}
	key(kb.Enter)
	if id := js[string](b, `location.hash`); id != "#main" {
		t.Errorf("the skip link leads to %q", id)
	}
	seen := make(map[string]bool)
	for range 150 {
		key(kb.Tab)
		at := js[[2]string](b, `(e => [e.id || e.className || e.tagName, getComputedStyle(e).outlineStyle])(document.activeElement)`)
		if at[0] == "BODY" {
			break
		}
		if seen[at[0]] = true; at[1] == "none" {
			t.Errorf("the focus is not seen on %s", at[0])
		}
	}
	for _, want := range []string{"pick", "scroll", "heat-object", "heat-in", "matrix-what", "latency-level"} {
		if !seen[want] {
			t.Errorf("the tabulator does not reach %s", want)
		}
	}
	b.do(chromedp.Focus(chromedp.CSS(`#t-loops thead th button`)))
	key(kb.Enter)
	if sort := js[string](b, `document.querySelector('#t-loops thead th').ariaSort`); sort != "ascending" {
		t.Errorf("Enter on a column sorts it %q", sort)
	}
	b.quiet()
}

// prefers makes the system of a page light or dark.
func prefers(scheme string) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

func TestThemes(t *testing.T) {
	page := written(t, rich(), nil)
	back := `getComputedStyle(document.body).backgroundColor`
	for scheme, want := range map[string][2]string{"light": {"rgb(246, 247, 249)", "Dark"}, "dark": {"rgb(20, 23, 27)", "Light"}} {
		b := open(t, page, prefers(scheme))
		if got := js[string](b, back); got != want[0] {
			t.Errorf("%s: background %s, want %s", scheme, got, want[0])
		}
		if got := js[string](b, `document.getElementById('theme').textContent`); got != want[1] {
			t.Errorf("%s: the switch says %q, want %q", scheme, got, want[1])
		}
		before := js[string](b, picture("heat-chart"))
		b.do(click("#theme"))
		if got := js[string](b, back); got == want[0] || js[string](b, picture("heat-chart")) == before {
			t.Errorf("%s: the switch changes nothing", scheme)
		}
		b.quiet()
	}
}

// On a telephone nothing but tables is scrolled sideways.
func TestNarrow(t *testing.T) {
	b := open(t, written(t, rich(), withPlan), chromedp.EmulateViewport(380, 800))
	if wide := js[int](b, `document.documentElement.scrollWidth`); wide > 380 {
		t.Errorf("the page is %d wide", wide)
	}
	b.quiet()
}

func TestPrint(t *testing.T) {
	b := open(t, written(t, rich(), withPlan))
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPrintBackground()))
	if err != nil || !strings.HasPrefix(string(pdf), "%PDF") || len(pdf) < 50_000 {
		t.Errorf("a PDF of %d bytes, %v", len(pdf), err)
	}
	b.quiet()
}

func TestTimeline(t *testing.T) {
	b := open(t, written(t, rich(), nil))
	seen := make(map[string]bool)
	for _, what := range []string{"loop", "node", "remote"} {
		b.do(choose("timeline-what", what))
		seen[js[string](b, picture("timeline-chart"))] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d pictures of three colourings", len(seen))
	}
	b.quiet()
}
