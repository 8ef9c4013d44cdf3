package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/mattn/go-runewidth"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// TextOptions are how much of each table WriteText prints.
type TextOptions struct {
	Top   int  // rows of objects, loops and first touches; 0 is all
	Color bool // emphasis by the escape sequences of terminals
}

// lineWidth is the columns that every line of the text keeps to, names cut short.
const lineWidth = 100

// WriteText writes r for people: the verdict and what stands behind it, what to
// know before believing it, and the tables.
func WriteText(w io.Writer, r *Report, opt TextOptions) error {
	t := &textWriter{w: w, top: opt.Top, color: opt.Color}
	t.head(r)
	if r.Accesses == 0 {
		return t.err
	}
	t.sharing(r)
	t.objects(r)
	t.loops(r)
	t.matrix(r)
	t.firstTouch(r)
	t.patterns(r)
	t.sourceLines(r)
	t.latency(r)
	t.lines(r)
	t.threads(r)
	return t.err
}

// textWriter remembers the first error.
type textWriter struct {
	w     io.Writer
	top   int
	color bool
	err   error
}

// The emphasis of terminals. It only repeats what the words say.
const (
	plainText = ""
	bold      = "\x1b[1m"
	yellow    = "\x1b[33m"
)

// paint emphasises s, if that is wanted.
func (t *textWriter) paint(emphasis, s string) string {
	if !t.color || emphasis == plainText {
		return s
	}
	return emphasis + s + "\x1b[0m"
}

func (t *textWriter) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// wrapped prints a paragraph; lines after the first are indented like the first's text.
func (t *textWriter) wrapped(first, s string) { t.emphasised(plainText, first, s) }

func (t *textWriter) emphasised(emphasis, first, s string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(first))
	width := lineWidth - len(indent)
	words := strings.Split(glue.Replace(plain.Replace(ident.Printable(s))), " ")
	for i, w := range words {
		words[i] = short(w, width)
	}
	for i, line := range strings.Split(text.WrapSoft(strings.Join(words, " "), width), "\n") {
		if i > 0 {
			first = indent
		}
		t.printf("%s\n", t.paint(emphasis, first+strings.TrimRight(strings.ReplaceAll(line, noBreak, " "), " ")))
	}
}

// noBreak stands for a space that keeps a number and its unit on one line.
const noBreak = "\u00a0"

var glue = strings.NewReplacer(" %", noBreak+"%", "< 0.1", "<"+noBreak+"0.1", "> 99.9", ">"+noBreak+"99.9",
	" million", noBreak+"million", " billion", noBreak+"billion", " KiB", noBreak+"KiB", " MiB", noBreak+"MiB", " GiB", noBreak+"GiB")

func (t *textWriter) head(r *Report) {
	t.wrapped("", origin(r))
	if only := restriction(r); only != "" {
		t.wrapped("only: ", only)
	}
	t.printf("\n")
	t.emphasised(bold, "", r.Verdict)
	for _, f := range r.Findings {
		t.wrapped("  - ", f)
	}
	for i, s := range r.Warnings {
		if i == 0 {
			t.printf("\n")
		}
		t.emphasised(yellow, "warning: ", s)
	}
	if r.Accesses > 0 {
		t.facts(r)
	}
}

// restriction is the part of the profile that the report is of; empty is all.
func restriction(r *Report) string {
	parts := slices.Clone(r.Only)
	for _, o := range r.OnlyObjects {
		parts = append(parts, "object "+o)
	}
	if len(r.OnlyThreads) > 0 {
		parts = append(parts, "thread "+topo.FormatList(slices.Sorted(slices.Values(r.OnlyThreads))))
	}
	return strings.Join(parts, ", ")
}

// origin is one line on where the figures come from.
func origin(r *Report) string {
	run := &r.Run
	source := run.Source
	if source == "emulate" {
		source = "emulated"
	}
	how := "every access counted"
	switch {
	case run.Source == "faults":
		source, how = "page faults", "every one recorded"
	case run.Period > 1:
		how = fmt.Sprintf("one access in %d counted", run.Period)
	}
	bind := "threads bound " + run.Bind
	switch {
	case len(run.Pinned) > 0:
		bind = "threads bound by " + strings.Join(run.Pinned, ", ")
	case run.Bind == "" || run.Bind == "none":
		bind = "threads not bound"
	}
	s := fmt.Sprintf("%s: %s on %s (%s, %s), %s, %s", strings.Join(run.Command, " "), source, run.Topology, numbered(run.Nodes, "node"), numbered(run.CPUs, "CPU"), bind, how)
	if run.Source == "emulate" {
		s += fmt.Sprintf(", LLC %s a node", run.Cache.LLC)
	}
	if run.Plan != "" {
		s += ", plan " + run.Plan + " in force"
	}
	return s
}

// ofFaults reports whether what is counted is page faults.
func (r *Report) ofFaults() bool { return r.Run.Source == "faults" }

// counted is what the figures of memory are of.
func (r *Report) counted() string {
	if r.ofFaults() {
		return "page faults"
	}
	return "DRAM accesses"
}

// unit is the same as heads of columns have it.
func (r *Report) unit() string {
	if r.ofFaults() {
		return "faults"
	}
	return "DRAM"
}

func (r *Report) head() string { return r.unit() + "\n%" }

// numbered is "1 node" or "2 nodes".
func numbered(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// recorded says how samples were taken: what came of what was wished.
func recorded(r *profile.Recording) string {
	how := r.Recorder
	if r.Kind != "" {
		how = strings.TrimPrefix(how+", "+r.Kind, ", ")
	}
	if how != "" {
		how += ": "
	}
	s := fmt.Sprintf("%s%s of %s samples are used", how, count(r.Used), count(r.Samples))
	if r.Rate > 0 {
		s += fmt.Sprintf(", %.0f a second and thread", r.Rate)
	}
	switch {
	case r.WishedFrequency > 0:
		s += fmt.Sprintf(" (wished: %d a second and CPU)", r.WishedFrequency)
	case r.WishedPeriod > 1:
		s += fmt.Sprintf(" (wished: one in %d)", r.WishedPeriod)
	}
	if r.Lost > 0 || r.Throttled > 0 {
		s += fmt.Sprintf("; %s lost, stopped by the kernel %s times", count(r.Lost), count(r.Throttled))
	}
	return strings.Join(append([]string{s}, r.Notes...), "; ")
}

// facts are the figures of the program as a whole, one a line.
func (t *textWriter) facts(r *Report) {
	t.printf("\n")
	line := func(name, format string, args ...any) {
		t.wrapped(fmt.Sprintf("%-16s", name), fmt.Sprintf(format, args...))
	}
	split := func(f *Flow) string {
		return fmt.Sprintf("%s: %v local, %v remote, %v unknown", count(f.Local+f.Remote+f.Unknown), f.LocalPct, f.RemotePct, f.UnknownPct)
	}
	line(r.counted(), "%s", split(&r.DRAM))
	if r.ofFaults() {
		line("", "a page's first is left out where others follow: it is always there, and always local")
	} else {
		line("all accesses", "%s", split(&r.All))
	}
	if ci := r.RemoteDRAMCI; ci != nil {
		what := r.unit() + " samples"
		if r.ofFaults() {
			what = r.counted()
		}
		line("sampled", "%s %s; 95 %% interval of the remote ones %v to %v", count(r.Quality.DRAMSamples), what, ci[0], ci[1])
	}
	if rec := r.Run.Recording; rec != nil {
		line("recorded", "%s", recorded(rec))
	}
	if i := float64(r.Imbalance); !math.IsNaN(i) && r.Run.Nodes > 1 {
		line("imbalance", "%.2f (1 is an even load of the memory controllers, %d is one node for all)", i, r.Run.Nodes)
	}
	line("matched", "%v of the %s outside stacks and program image fall in a known object", r.Match, r.counted())
	line("covered", "%v of the pages that became resident have a counted access", r.Coverage)
	if r.Small.Sites > 0 {
		line("small objects", "those below a page are %v of the touched bytes, %v of the %s; they are not placed singly", r.Small.Bytes, r.Small.DRAM, r.counted())
	}
}

func (t *textWriter) sharing(r *Report) {
	s := &r.Sharing
	t.title(fmt.Sprintf("Sharing of the %v touched", units.Bytes(s.TouchedBytes)))
	tab := newTable("pages\n ", "bytes\n%", "accesses\n%", r.head())
	row := func(name string, bytes, accesses, dram Pct) {
		tab.AppendRow(table.Row{name, cell(bytes), cell(accesses), cell(dram)})
	}
	row("private: stacks, program image", s.Private, s.Accesses.Private, s.DRAMAccesses.Private)
	row("non-shared: touched from one node", s.NonShared, s.Accesses.NonShared, s.DRAMAccesses.NonShared)
	row("  by a single thread", s.SingleThread, s.accessesSingle, s.dramSingle)
	row("uniformly shared: from several nodes", s.UniformlyShared, s.Accesses.UniformlyShared, s.DRAMAccesses.UniformlyShared)
	row("  also without serial initialisation", s.WithoutSerialInit, s.accessesWithout, s.dramWithout)
	row("  used evenly, so no place is good", s.EvenlyUsed, s.accessesEven, s.dramEven)
	t.render(tab, 0)
}

func (t *textWriter) objects(r *Report) {
	by := r.counted()
	if r.Latency != nil && r.Latency.priced() {
		by = "what their remote loads cost"
	}
	t.title("Objects, by " + r.byText(by))
	tab := newTable("object\n ", "kind\n ", "size\n ", r.head(), "remote\n%", "best\n%", "shared\n%", "without\ninit %", "even\n%")
	shown := t.rows(len(r.Objects), func(i int) bool {
		o := &r.Objects[i]
		return o.DRAMPct >= tiny || r.bytesPct(o.TouchedBytes) >= tiny
	})
	placed := ""
	for _, i := range shown {
		o := &r.Objects[i]
		name := o.Name
		if o.Instances > 1 && o.Kind != "stack" && o.Kind != "image" {
			name += fmt.Sprintf(" ×%d", o.Instances)
		}
		kind := o.Kind
		if o.Placed {
			kind += " placed"
			placed = "; placed: by the program itself (mbind, set_mempolicy, move_pages, numaopt.h), which no plan changes"
		}
		tab.AppendRow(table.Row{
			short(name, 36), kind, units.Bytes(o.Bytes).String(), cell(o.DRAMPct), cell(o.RemoteDRAM), cell(o.BestPlacement),
			shared(*o, o.UniformlyShared), shared(*o, o.WithoutSerialInit), shared(*o, o.EvenlyUsed),
		})
	}
	t.render(tab, len(r.Objects)-len(shown))
	t.wrapped("  ", r.unit()+": of the program's; remote: of the object's own; best: remote with each page on the node that uses it most; shared: its bytes touched from several nodes, without init: leaving serial code out, even: without a good place"+placed+".")
}

func (t *textWriter) loops(r *Report) {
	by := r.counted()
	if r.sorted != "size" {
		by = r.byText(by)
	}
	t.title("Loops, and functions outside loops, by " + by)
	tab := newTable("loop\n ", "kind\n ", "entries\n ", "threads\n ", r.head(), "remote\n%", "of all\nremote %")
	shown := t.rows(len(r.Loops), func(i int) bool { return r.Loops[i].DRAMPct >= tiny })
	for _, i := range shown {
		l := &r.Loops[i]
		entries, name := "", l.Name
		if l.Entries > 0 {
			entries = compact(l.Entries)
		}
		if l.Thread != "" && l.Thread != l.Name {
			name += " in " + l.Thread
		}
		kind := l.Kind
		if l.Dynamic {
			kind = "dynamic"
			if l.Kind != string(profile.Loop) {
				kind = "dynamic?" // it looks so
			}
		}
		tab.AppendRow(table.Row{short(name, 42), kind, entries, l.Threads, cell(l.DRAMPct), cell(l.RemoteDRAM), cell(l.RemoteAccess)})
	}
	t.render(tab, len(r.Loops)-len(shown))
	for _, i := range shown {
		if l := &r.Loops[i]; len(l.Merged) > 0 {
			t.wrapped("  ", l.Name+": "+mergedText(l))
		}
	}
}

// joined is "3, 7, 9".
func joined(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}

// mergedText says which loops one stands for.
func mergedText(l *Loop) string {
	return fmt.Sprintf("gcc merged %d loops into this one, those of lines %s, with one thread number: what they do, and want, is told of all together. Compiled by clang, or in a function each, they are told apart.",
		len(l.Merged), joined(l.Merged))
}

func (t *textWriter) firstTouch(r *Report) {
	if len(r.FirstTouch) == 0 {
		return
	}
	t.title("First touches, by size")
	tab := newTable("object\n ", "first touched at\n ", "serial\n ", "by\nrank", "size\n ", "homes by\nnode:%", "remote\n%")
	shown := t.rows(len(r.FirstTouch), func(i int) bool { return r.bytesPct(r.FirstTouch[i].Bytes) >= tiny })
	for _, i := range shown {
		f := &r.FirstTouch[i]
		serial := ""
		if f.Serial {
			serial = "yes"
		}
		tab.AppendRow(table.Row{short(f.Object, 27), short(f.Place, 28), serial, short(f.Ranks, 5), units.Bytes(f.Bytes).String(), homes(f.HomePages, f.Pages), cell(f.RemoteDRAM)})
	}
	t.render(tab, len(r.FirstTouch)-len(shown))
}

// homes prints where pages are: "0" if all are there, "even", "0:75 1:25".
func homes(byNode []int, all int) string {
	var used []string
	low, high := math.MaxInt, 0
	for n, c := range byNode {
		low, high = min(low, c), max(high, c)
		switch {
		case c == all:
			return fmt.Sprint(n)
		case c > 0:
			used = append(used, fmt.Sprintf("%d:%.0f", n, 100*float64(c)/float64(all)))
		}
	}
	switch {
	case len(used) == 0:
		return "unknown"
	case len(used) == len(byNode) && high-low <= max(1, all/50):
		return "even"
	}
	return short(strings.Join(used, " "), 12)
}

// mostThreads is up to how many threads the text lists singly.
const mostThreads = 16

func (t *textWriter) threads(r *Report) {
	if len(r.Threads) > mostThreads && t.top > 0 {
		t.printf("\n%d threads: their rows are in the JSON, and with --top 0.\n", len(r.Threads))
		return
	}
	t.title("Threads")
	tab := newTable("rank\n ", "cpu\n ", "node\n ", r.head(), "remote\n%", "of all\nremote %")
	for _, x := range r.Threads {
		tab.AppendRow(table.Row{x.Rank, x.CPU, x.Node, cell(x.DRAMPct), cell(x.RemoteDRAM), cell(x.RemoteAccess)})
	}
	t.render(tab, 0)
}

// mostNodes is up to how many nodes the matrix fits a line.
const mostNodes = 10

func (t *textWriter) matrix(r *Report) {
	n := len(r.Matrix.DRAM)
	if n < 2 {
		return
	}
	t.title("From node (rows) to memory of node (columns), % of " + r.counted())
	if n > mostNodes {
		t.printf("%d nodes: the matrix is in the JSON\n", n)
		return
	}
	head := table.Row{"node"}
	for j := range n {
		head = append(head, fmt.Sprint(j))
	}
	tab := newTableRow(append(head, "unknown"))
	for i, row := range r.Matrix.DRAM {
		cells := table.Row{i}
		for _, c := range row {
			cells = append(cells, cell(pct(c, r.DRAMAccesses)))
		}
		tab.AppendRow(append(cells, cell(pct(r.Matrix.DRAMUnknown[i], r.DRAMAccesses))))
	}
	t.render(tab, 0)
}

func (t *textWriter) title(s string) { t.printf("\n%s\n", t.paint(bold, s)) }

// tiny is the share, in per cent of bytes or DRAM accesses, below which a row is
// left out unless all are asked for.
const tiny = 0.1

// rows picks which of n rows to print: the first, as many as asked for, that are
// worth it; where none is, the first alone.
func (t *textWriter) rows(n int, worth func(i int) bool) []int {
	var list []int
	for i := range n {
		if t.top == 0 || len(list) < t.top && worth(i) {
			list = append(list, i)
		}
	}
	if len(list) == 0 && n > 0 {
		list = append(list, 0)
	}
	return list
}

func (r *Report) bytesPct(bytes int64) Pct { return pct(uint64(bytes), uint64(r.Sharing.TouchedBytes)) }

func newTable(heads ...any) table.Writer { return newTableRow(table.Row(heads)) }

// newTableRow makes a table without borders whose first column is text.
func newTableRow(heads table.Row) table.Writer {
	tab := table.NewWriter()
	tab.AppendHeader(heads)
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true, DoNotColorBordersAndSeparators: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	tab.SetStyle(style)
	var columns []table.ColumnConfig
	for i, h := range heads {
		align := text.AlignRight
		switch strings.TrimSpace(fmt.Sprint(h)) {
		case "object", "objects", "line", "loop", "wants", "pages", "kind", "serial", "first touched at", "by\nrank", "homes by\nnode:%", "served by", "sharing", "used at":
			align = text.AlignLeft
		}
		columns = append(columns, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	tab.SetColumnConfigs(columns)
	return tab
}

// render prints tab and how many rows were left out.
func (t *textWriter) render(tab table.Writer, more int) {
	for _, line := range strings.Split(tab.Render(), "\n") {
		t.printf("  %s\n", strings.TrimRight(line, " "))
	}
	if more > 0 {
		t.printf("  and %d more, or below %v %%: --top 0 prints all\n", more, tiny)
	}
}

// compact prints a number in at most six characters: "12345", "1.2e6".
func compact(n uint64) string {
	if n < 100_000 {
		return strconv.FormatUint(n, 10)
	}
	return strings.NewReplacer("e+0", "e", "e+", "e").Replace(strconv.FormatFloat(float64(n), 'e', 1, 64))
}

// cell prints a percentage for a column that says "%".
func cell(p Pct) string {
	return strings.ReplaceAll(strings.TrimSuffix(p.String(), " %"), " ", "")
}

// plain leaves out what tells no two names of one program apart.
var plain = strings.NewReplacer("(anonymous namespace)::", "")

// short cuts s to n columns, in the middle.
func short(s string, n int) string {
	s = plain.Replace(ident.Printable(s))
	width := runewidth.StringWidth(s)
	if width <= n {
		return s
	}
	tail := n / 3
	return runewidth.Truncate(s, n-tail-1, "") + "…" + runewidth.TruncateLeft(s, width-tail, "")
}

// shared prints a class of pages, which private objects do not have.
func shared(o Object, p Pct) string {
	if k := profile.Kind(o.Kind); k.Private() {
		return "-"
	}
	return cell(p)
}
