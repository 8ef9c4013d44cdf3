package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"numaopt/internal/annotate"
)

// SourceLines is where in the source the DRAM accesses are made.
type SourceLines struct {
	Lines int          `json:"lines"`
	Most  []SourceLine `json:"most_accesses"` // the first mostLines of them
}

// SourceLine is a line of source, or code of which no line is known.
type SourceLine struct {
	Name         string `json:"name"`
	Function     string `json:"function,omitempty"`
	File         string `json:"file,omitempty"`
	Line         int    `json:"line,omitempty"`
	DRAMAccesses uint64 `json:"dram_accesses"`
	DRAMPct      Pct    `json:"dram_pct"`
	DRAM         Flow   `json:"dram"`
	RemoteDRAM   Pct    `json:"remote_dram_pct"`
	Store        Pct    `json:"store_pct"`
	Latency      Pct    `json:"mean_latency"` // cycles of its loads from DRAM
	// Objects are those that it accesses in DRAM, most accesses first.
	Objects []LineObject `json:"objects"`
}

// LineObject is what a line accesses of an object.
type LineObject struct {
	Name         string `json:"name"`
	DRAMAccesses uint64 `json:"dram_accesses"`
	RemoteDRAM   Pct    `json:"remote_dram_pct"`
}

// sourceLines is nil where the profile does not tell.
func (b *builder) sourceLines() *SourceLines {
	all := annotate.Lines(b.p, b.groupOf)
	if len(all) == 0 {
		return nil
	}
	s := &SourceLines{Lines: len(all), Most: []SourceLine{}}
	for i := range all[:min(len(all), mostLines)] {
		s.Most = append(s.Most, b.sourceLine(&all[i]))
	}
	return s
}

func (b *builder) sourceLine(l *annotate.Line) SourceLine {
	n := l.DRAM.Total()
	x := SourceLine{
		Name: l.Name, Function: l.Function, File: l.File, Line: l.Line,
		DRAMAccesses: n, DRAMPct: pct(n, b.total.DRAM.Total()), DRAM: flow(l.DRAM), RemoteDRAM: Pct(l.DRAM.RemotePct()),
		Store: pct(l.Stores, n), Latency: Pct(l.Latency()),
	}
	for _, o := range l.Objects {
		x.Objects = append(x.Objects, LineObject{Name: b.groups[o.Group].Name, DRAMAccesses: o.DRAM.Total(), RemoteDRAM: Pct(o.DRAM.RemotePct())})
	}
	return x
}

func (t *textWriter) sourceLines(r *Report) {
	s := r.SourceLines
	if s == nil {
		return
	}
	t.title("Lines of source, by " + r.counted())
	tab := newTable("line", r.unit()+"\n%", "remote\n%", "store\n%", "cycles\na load", "objects")
	shown := t.rows(len(s.Most), func(i int) bool { return s.Most[i].DRAMPct >= tiny })
	for _, i := range shown {
		l := &s.Most[i]
		tab.AppendRow(table.Row{short(l.Name, 29), cell(l.DRAMPct), cell(l.RemoteDRAM), cell(l.Store), whole(l.Latency), l.objects()})
	}
	t.render(tab, s.Lines-len(shown))
}

// whole prints a figure without digits after the point; "-" where it is not known.
func whole(p Pct) string {
	if math.IsNaN(float64(p)) {
		return "-"
	}
	return fmt.Sprintf("%.0f", float64(p))
}

// objects is the names of the first few.
func (l *SourceLine) objects() string {
	const most = 2
	var names []string
	for _, o := range l.Objects[:min(len(l.Objects), most)] {
		names = append(names, short(o.Name, 14))
	}
	if more := len(l.Objects) - most; more > 0 {
		names = append(names, fmt.Sprintf("+%d", more))
	}
	return strings.Join(slices.Compact(names), ", ")
}
