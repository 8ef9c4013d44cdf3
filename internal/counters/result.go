package counters

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"numaopt/internal/pmu"
	"numaopt/internal/units"
)

// Result is what all runs cost.
type Result struct {
	Command []string `json:"command"`
	// What says what the events count, and Events names them.
	What   string   `json:"counted"`
	Events []string `json:"events"`
	// Caches is that lines from caches of other nodes were counted, apart from their DRAM.
	Caches   bool      `json:"remote_caches_counted"`
	Runs     []Traffic `json:"runs"`
	Mean     Traffic   `json:"mean"` // of the runs
	*Remote            // nil where a run brought too few lines
	Warnings []string  `json:"warnings"`
}

// Remote is the part of the lines that no cache of the node had, in per cent, that came
// from other nodes: of the mean, and the least and greatest of the runs.
type Remote struct {
	RemotePct float64 `json:"remote_pct"`
	LeastPct  float64 `json:"least_remote_pct"`
	MostPct   float64 `json:"most_remote_pct"`
}

// minLines are the fewest lines for which a percentage is given: below, a page or two
// of the loader's decide it.
const minLines = 1000

// NewResult sums up runs, of which there is at least one.
func NewResult(opt Options, runs []Traffic, warnings []string) *Result {
	r := &Result{Command: opt.Command, What: opt.Counters.What, Runs: runs, Warnings: append([]string{}, warnings...)}
	for _, e := range append(append([]pmu.Event{}, opt.Counters.Events...), opt.Counters.Uncore...) {
		r.Caches = r.Caches || e.Role == pmu.RemoteCache
		r.Events = append(r.Events, fmt.Sprintf("%s (%#x, %s)", e.Name, e.Config, e.From))
	}
	r.Mean = mean(runs)
	if r.Mean.Running < 0.995 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the events took turns on the counters: each was there for %.0f %% of the time or more, and its count is scaled", 100*r.Mean.Running))
	}
	var remote []float64
	for i := range runs {
		t := &runs[i]
		if n := t.LocalDRAM + t.RemoteDRAM + t.RemoteCache; n < minLines {
			r.Warnings = append(r.Warnings, fmt.Sprintf("run %d brought %.0f lines from memory: too few for a percentage (%d)", i+1, n, minLines))
			return r
		}
		remote = append(remote, t.Remote())
	}
	r.Remote = &Remote{r.Mean.Remote(), floats.Min(remote), floats.Max(remote)}
	return r
}

// mean is that of runs; Running is the least of theirs.
func mean(runs []Traffic) Traffic {
	of := func(f func(*Traffic) float64) float64 {
		values := make([]float64, len(runs))
		for i := range runs {
			values[i] = f(&runs[i])
		}
		return stat.Mean(values, nil)
	}
	m := Traffic{
		LocalDRAM:   of(func(t *Traffic) float64 { return t.LocalDRAM }),
		RemoteDRAM:  of(func(t *Traffic) float64 { return t.RemoteDRAM }),
		RemoteCache: of(func(t *Traffic) float64 { return t.RemoteCache }),
		Running:     1,
	}
	for i := range runs {
		m.Elapsed += runs[i].Elapsed / time.Duration(len(runs))
		m.Running = math.Min(m.Running, runs[i].Running)
	}
	m.Nodes = meanNodes(runs)
	return m
}

// meanNodes is the mean of each node's; a run that does not have it moved nothing there.
func meanNodes(runs []Traffic) []Node {
	byNode := map[int]*Node{}
	for i := range runs {
		for _, n := range runs[i].Nodes {
			m := byNode[n.Node]
			if m == nil {
				m = &Node{Node: n.Node}
				byNode[n.Node] = m
			}
			m.Read += n.Read / float64(len(runs))
			m.Written += n.Written / float64(len(runs))
			m.Sent += n.Sent / float64(len(runs))
		}
	}
	var out []Node
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		out = append(out, *byNode[node])
	}
	return out
}

// WriteJSON writes the result for machines.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the tables for people.
func (r *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	m := &r.Mean
	all := m.LocalDRAM + m.RemoteDRAM + m.RemoteCache
	t := newTable("", "lines", "share", "bytes")
	for _, row := range []struct {
		name    string
		v       float64
		counted bool
	}{{"local DRAM", m.LocalDRAM, true}, {"remote DRAM", m.RemoteDRAM, true}, {"remote caches", m.RemoteCache, r.Caches}} {
		if !row.counted {
			continue
		}
		share := "-"
		if r.Remote != nil {
			share = units.FormatPercent(units.Percent(row.v, all))
		}
		t.AppendRow(table.Row{row.name, fmt.Sprintf("%.0f", row.v), share, units.Bytes(row.v * lineBytes)})
	}
	fmt.Fprintf(&b, "%s\n\nremote: %s (%s)\n", t.Render(), r.remote(), r.What)
	if len(m.Nodes) > 0 {
		t := newTable("node", "memory read", "memory written", "sent to other nodes")
		for _, n := range m.Nodes {
			t.AppendRow(table.Row{n.Node, units.Bytes(n.Read), units.Bytes(n.Written), units.Bytes(n.Sent)})
		}
		fmt.Fprintf(&b, "\nThe whole machine meanwhile:\n%s\n", t.Render())
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// remote is the percentage in words.
func (r *Result) remote() string {
	switch {
	case r.Remote == nil:
		return "too few lines to tell"
	case len(r.Runs) == 1:
		return units.FormatPercent(r.RemotePct)
	}
	return fmt.Sprintf("%s, %s to %s in %d runs; counts are their mean", units.FormatPercent(r.RemotePct), units.FormatPercent(r.LeastPct), units.FormatPercent(r.MostPct), len(r.Runs))
}

// newTable is one of right-aligned numbers behind a name.
func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "", "  "
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(header)
	var columns []table.ColumnConfig
	for i := range header {
		if i > 0 {
			columns = append(columns, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(columns)
	return t
}
