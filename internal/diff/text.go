package diff

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"numaopt/internal/ident"
	"numaopt/internal/units"
)

// verdict is one sentence.
func (d *differ) verdict(r *Result) string {
	x := &r.RemoteDRAM
	if d.lacking != nil {
		return "No verdict: " + d.lacking.Error() + "."
	}
	s := fmt.Sprintf("%s of the DRAM accesses are remote, before %s: ", units.FormatPercent(float64(x.After)), units.FormatPercent(float64(x.Before)))
	interval := ""
	if x.Low != x.High {
		interval = fmt.Sprintf(" (95 %%: %+.1f to %+.1f)", x.Low, x.High)
	}
	switch x.Word {
	case Worse, Better:
		return s + fmt.Sprintf("%.1f points %s%s.", math.Abs(float64(x.Points)), x.Word, interval)
	}
	if x.Low < Number(-d.repeat) || x.High > Number(d.repeat) {
		return s + fmt.Sprintf("%+.1f points%s, which may be chance.", x.Points, interval)
	}
	return s + fmt.Sprintf("%+.1f points%s, no more than equal runs differ by.", x.Points, interval)
}

// WriteText writes r for people, in lines of at most 100 characters but for names of
// commands; top is how many objects and loops, 0 is all.
func (r *Result) WriteText(w io.Writer, top int) error {
	t := &textWriter{w: w, top: top}
	for _, s := range r.Warnings {
		t.wrapped("warning: ", s)
	}
	if len(r.Warnings) > 0 {
		t.printf("\n")
	}
	t.wrapped("", r.Verdict)
	if r.RemoteDRAM.Word == Same && r.changed() {
		t.wrapped("", "Some objects or loops changed all the same, see below.")
	}
	t.totals(r)
	t.entries("Objects", "object", r.Objects)
	t.entries("Loops, and functions outside loops", "loop", r.Loops)
	t.worsened(r)
	return t.err
}

// changed reports whether an object or a loop did, significantly.
func (r *Result) changed() bool {
	return slices.ContainsFunc(slices.Concat(r.Objects, r.Loops), func(e Entry) bool { return e.Contribution.Word != Same })
}

const lineWidth = 100

type textWriter struct {
	w   io.Writer
	top int
	err error
}

func (t *textWriter) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// wrapped prints s behind first, further lines indented below s.
func (t *textWriter) wrapped(first, s string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(first))
	s = text.WrapSoft(ident.Printable(s), lineWidth-len(indent))
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			first = indent
		}
		t.printf("%s%s\n", first, strings.TrimRight(line, " "))
	}
}

func (t *textWriter) totals(r *Result) {
	tab := newTable("", "before", "after", "change")
	row := func(name string, f Figure, digits int, unit string) {
		if math.IsNaN(float64(f.Before)) && math.IsNaN(float64(f.After)) {
			return
		}
		tab.AppendRow(table.Row{name, number(f.Before, digits, unit), number(f.After, digits, unit), change(f.Change(), digits)})
	}
	row("remote, of DRAM accesses", r.RemoteDRAM.Figure, 1, " %")
	row("remote, of all accesses", r.RemoteAccess, 1, " %")
	row("DRAM accesses", r.DRAMAccesses, 0, "")
	row("imbalance: busiest node's memory / mean", r.Imbalance, 2, "")
	row("pages uniformly shared", r.Uniform, 1, " %")
	row("  also without serial initialisation", r.Without, 1, " %")
	row("pages used from one node", r.NonShared, 1, " %")
	if r.LoadLatency != nil {
		row("mean latency of loads, cycles", *r.LoadLatency, 1, "")
		row("cost of remote loads, of the loads' cycles", *r.LatencyCost, 1, " %")
	}
	t.printf("\n")
	t.render(tab)
}

// tiny is the change, in points, below which a row is left out unless all are asked for.
const tiny = 0.1

func (t *textWriter) entries(title, what string, list []Entry) {
	tab := newTable(what, "DRAM %\nbefore", "\nafter", "remote %\nbefore", "\nafter", "points\nbefore", "\nafter", "\nchange", "")
	more, rows := 0, 0
	for i := range list {
		e := &list[i]
		if t.top > 0 && (rows == t.top || !(math.Abs(float64(e.Contribution.Points)) >= tiny)) {
			more++
			continue
		}
		rows++
		c := &e.Contribution
		tab.AppendRow(table.Row{short(e.Name, 32), number(e.DRAM.Before, 1, ""), number(e.DRAM.After, 1, ""), number(e.Remote.Before, 1, ""),
			number(e.Remote.After, 1, ""), number(c.Before, 1, ""), number(c.After, 1, ""), change(float64(c.Points), 1), e.mark()})
	}
	if rows == 0 {
		t.printf("\n%s: none changed by %v points\n", title, tiny)
		return
	}
	t.printf("\n%s, by change\n", title)
	t.render(tab)
	if more > 0 {
		t.printf("  and %d more: --top 0 prints all\n", more)
	}
	if what == "object" {
		t.wrapped("  ", "DRAM: of the program's accesses; remote: of the object's own; points: its remote ones, of all the program's.")
	}
}

// mark says what is special about a row.
func (e *Entry) mark() string {
	var words []string
	if e.New {
		words = append(words, "new")
	}
	if e.Gone {
		words = append(words, "gone")
	}
	if w := e.Contribution.Word; w != Same {
		words = append(words, string(w))
	}
	if e.Doubtful {
		words = append(words, "?")
	}
	return strings.Join(words, ", ")
}

func (t *textWriter) worsened(r *Result) {
	if len(r.Worsened) == 0 {
		return
	}
	t.printf("\nWhat got worse, and why\n")
	for _, x := range r.Worsened {
		t.wrapped("  ", fmt.Sprintf("%s: %+.1f points", x.Name, x.Points))
		for _, why := range x.Why {
			t.wrapped("    - ", why)
		}
	}
}

func newTable(heads ...any) table.Writer {
	tab := table.NewWriter()
	tab.AppendHeader(table.Row(heads))
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true, DoNotColorBordersAndSeparators: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	tab.SetStyle(style)
	var columns []table.ColumnConfig
	for i := range heads {
		align := text.AlignRight
		if i == 0 || i == 8 { // the name, and the mark
			align = text.AlignLeft
		}
		columns = append(columns, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	tab.SetColumnConfigs(columns)
	return tab
}

func (t *textWriter) render(tab table.Writer) {
	for _, line := range strings.Split(tab.Render(), "\n") {
		t.printf("  %s\n", strings.TrimRight(line, " "))
	}
}

func number(n Number, digits int, unit string) string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return fmt.Sprintf("%.*f%s", digits, float64(n), unit)
}

func change(f float64, digits int) string {
	if math.IsNaN(f) {
		return "-"
	}
	s := fmt.Sprintf("%+.*f", digits, f)
	if strings.Trim(s, "+-0.") == "" {
		return strings.TrimLeft(s, "+-")
	}
	return s
}

// short cuts a name to n characters, in the middle.
func short(s string, n int) string {
	r := []rune(ident.Printable(s))
	if len(r) <= n {
		return string(r)
	}
	tail := n / 3
	return string(r[:n-tail-1]) + "…" + string(r[len(r)-tail:])
}
