package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"numaopt/internal/classify"
	"numaopt/internal/latency"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Latency is how long loads took. Stores have no part in it.
type Latency struct {
	All    Timing   `json:"all"`
	Levels []Timing `json:"levels"` // by where loads were served
	// Nodes is node × node: [i][j] is loads by threads of node i from memory of node j.
	Nodes   [][]Timing `json:"nodes"`
	Objects []Timing   `json:"objects"` // those whose remote loads cost most first
	Loops   []Timing   `json:"loops"`   // likewise
}

// Timing is the latencies of some loads, in cycles.
type Timing struct {
	Name    string `json:"name,omitempty"`
	Samples uint64 `json:"samples"` // of loads with a latency, of which the figures are
	Loads   Pct    `json:"loads_pct"`
	Mean    Pct    `json:"mean"`
	Median  Pct    `json:"median"`
	P90     Pct    `json:"p90"`
	P99     Pct    `json:"p99"`
	Share   Pct    `json:"latency_pct"` // of all latency
	// Cost is the cycles of remote loads beyond local ones, in per cent of all latency;
	// not for levels and nodes.
	Cost *Pct `json:"remote_cost_pct,omitempty"`
	// CDF is pairs of cycles and the share of the loads that took no more.
	CDF    [][2]Pct      `json:"cdf"`
	Ranges []TimingRange `json:"ranges"`
}

// TimingRange is the loads that took from Least to Most cycles.
type TimingRange struct {
	Least uint64 `json:"least"`
	Most  uint64 `json:"most"`
	Loads Pct    `json:"loads_pct"`
	Share Pct    `json:"latency_pct"`
}

// latency is nil where the profile has none.
func (b *builder) latency() *Latency {
	all := latency.Total(b.p)
	if all.Samples == 0 {
		return nil
	}
	time := func(h *latency.Histogram, name string) Timing { return timing(h, &all, name) }
	l := &Latency{All: time(&all, ""), Levels: []Timing{}, Objects: []Timing{}, Loops: []Timing{}}
	levels := latency.By(b.p, profile.NumServed, func(l *profile.Latency) int { return int(l.Served) })
	for i := range levels {
		if t := time(&levels[i], profile.Served(i).String()); t.Loads > 0 {
			l.Levels = append(l.Levels, t)
		}
	}
	pairs := latency.FindPairs(b.p)
	for i := range pairs.Nodes {
		row := []Timing{}
		for j := range pairs.Nodes {
			row = append(row, time(pairs.At(i, j), ""))
		}
		l.Nodes = append(l.Nodes, row)
	}
	l.Objects = b.timings(&all, len(b.groups), b.loaded, func(i int) string { return b.groups[i].Name })
	l.Loops = b.timings(&all, len(b.p.Regions), func(x *profile.Latency) int { return int(x.Region) }, b.regionName)
	return l
}

// loaded is the group of objects that loads are of.
func (b *builder) loaded(l *profile.Latency) int { return b.groupOf[l.Object] }

// timings is the latencies by key, those whose remote loads cost most first, else the
// longest.
func (b *builder) timings(all *latency.Histogram, n int, key func(*profile.Latency) int, name func(int) string) []Timing {
	list := []Timing{}
	costs := latency.Costs(b.p, n, key)
	for i, h := range latency.By(b.p, n, key) {
		t := timing(&h, all, name(i))
		if h.Samples == 0 {
			continue
		}
		if costs != nil {
			cost := pct(costs[i], all.Cycles)
			t.Cost = &cost
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(x, y Timing) int { return cmp.Or(cmp.Compare(y.cost(), x.cost()), cmp.Compare(y.Share, x.Share)) })
	return list
}

func (t *Timing) cost() Pct {
	if t.Cost == nil {
		return 0
	}
	return *t.Cost
}

// priced reports whether the cost of remote loads is known.
func (l *Latency) priced() bool { return len(l.Objects) > 0 && l.Objects[0].Cost != nil }

func timing(h, all *latency.Histogram, name string) Timing {
	t := Timing{
		Name: name, Samples: h.Samples, Loads: pct(h.Accesses+h.Untimed, all.Accesses+all.Untimed),
		Mean: Pct(h.Mean()), Median: Pct(h.Quantile(0.5)), P90: Pct(h.Quantile(0.9)), P99: Pct(h.Quantile(0.99)),
		Share: pct(h.Cycles, all.Cycles), CDF: [][2]Pct{}, Ranges: []TimingRange{},
	}
	for _, p := range h.CDF() {
		t.CDF = append(t.CDF, [2]Pct{Pct(p.Cycles), Pct(100 * p.Share)})
	}
	for _, x := range h.Ranges() {
		t.Ranges = append(t.Ranges, TimingRange{x.Least, x.Most, pct(x.Accesses, h.Accesses), pct(x.Cycles, h.Cycles)})
	}
	return t
}

// SharedLines is the cache lines that several nodes use, one of them for writing.
type SharedLines struct {
	Lines int          `json:"lines"`
	False int          `json:"false_sharing_lines"`
	Most  []SharedLine `json:"most_contended"` // at most mostLines
}

// SharedLine is one of them. All counts are samples.
type SharedLine struct {
	Object  string     `json:"object"`
	Offset  int64      `json:"offset"` // of its first byte in the object
	Nodes   []int      `json:"nodes"`
	Sharing string     `json:"sharing"` // "true", "false" or "?", see classify
	Loads   uint64     `json:"loads"`
	Stores  uint64     `json:"stores"`
	HITM    uint64     `json:"hitm"`
	Users   []LineUser `json:"users"`
	other   uint64     // see classify.Line.Elsewhere
}

// LineUser is code of a node that uses a line.
type LineUser struct {
	Node    int    `json:"node"`
	Place   string `json:"place"`
	Loop    string `json:"loop"`
	Loads   uint64 `json:"loads"`
	Stores  uint64 `json:"stores"`
	HITM    uint64 `json:"hitm"`
	Read    []int  `json:"read_bytes"` // of the line, where loads began
	Written []int  `json:"written_bytes"`
}

// mostLines is how many lines a report has: who needs more has another problem.
const mostLines = 200

// lines is nil where the profile has none.
func (b *builder) lines() *SharedLines {
	all := classify.Lines(b.p)
	if len(all) == 0 {
		return nil
	}
	s := &SharedLines{Lines: len(all), Most: []SharedLine{}}
	for i := range all {
		if all[i].Sharing == classify.FalseSharing {
			s.False++
		}
		if i < mostLines {
			s.Most = append(s.Most, b.line(&all[i]))
		}
	}
	return s
}

func (b *builder) line(l *classify.Line) SharedLine {
	x := SharedLine{
		Object: b.groups[b.groupOf[l.Object]].Name, Offset: max(0, l.Offset-int64(b.p.Objects[l.Object].Head)), Nodes: l.Nodes,
		Sharing: string(l.Sharing), Loads: l.Loads, Stores: l.Stores, HITM: l.HITM, other: l.Elsewhere,
	}
	for _, u := range l.Parties {
		x.Users = append(x.Users, LineUser{
			Node: int(u.Node), Place: b.place(int(u.Place), int(u.Region)), Loop: b.regionName(int(u.Region)),
			Loads: u.Loads, Stores: u.Stores, HITM: u.HITM, Read: bytesOf(u.Read), Written: bytesOf(u.Written),
		})
	}
	return x
}

// bytesOf is the numbers of the bits of a mask.
func bytesOf(mask uint64) []int {
	list := []int{}
	for b := range 64 {
		if mask>>b&1 != 0 {
			list = append(list, b)
		}
	}
	return list
}

func (t *textWriter) latency(r *Report) {
	l := r.Latency
	if l == nil {
		return
	}
	t.title("Latency of loads in cycles, by where they were served")
	tab := newTable("served by\n ", "loads\n%", "samples\n ", "mean\n ", "median\n ", "90 %\nbelow", "99 %\nbelow", "of all\nlatency %")
	for _, x := range append(slices.Clone(l.Levels), l.All) {
		name := x.Name
		if name == "" {
			name = "all"
		}
		tab.AppendRow(table.Row{name, cell(x.Loads), compact(x.Samples), cycles(x.Mean), cycles(x.Median), cycles(x.P90), cycles(x.P99), cell(x.Share)})
	}
	t.render(tab, 0)
	t.wrapped("  ", "Latency by ranges: "+ranges(&l.All)+". The distribution of each row is in the JSON.")
	t.costs("object", l.Objects)
	t.costs("loop", l.Loops)
	t.pairs(l)
}

// ranges is which part of the latency is of loads that took how long.
func ranges(t *Timing) string {
	var parts []string
	for _, x := range t.Ranges {
		if x.Share >= 1 {
			parts = append(parts, fmt.Sprintf("%d–%d cycles %v", x.Least, x.Most, x.Share))
		}
	}
	return strings.Join(parts, ", ")
}

func (t *textWriter) costs(what string, list []Timing) {
	t.title(fmt.Sprintf("Latency of loads in cycles, by %s", what))
	tab := newTable(what+"\n ", "loads\n%", "mean\n ", "median\n ", "90 %\nbelow", "of all\nlatency %", "cost of\nremote %")
	shown := t.rows(len(list), func(i int) bool { return list[i].cost() >= tiny || list[i].Share >= tiny })
	for _, i := range shown {
		x := &list[i]
		cost := "-"
		if x.Cost != nil {
			cost = cell(*x.Cost)
		}
		tab.AppendRow(table.Row{short(x.Name, 42), cell(x.Loads), cycles(x.Mean), cycles(x.Median), cycles(x.P90), cell(x.Share), cost})
	}
	t.render(tab, len(list)-len(shown))
	if what == "object" {
		t.wrapped("  ", "Cost of remote: what remote loads took beyond the mean of the thread's own memory, in % of all latency.")
	}
}

// pairs is the matrix of mean latencies.
func (t *textWriter) pairs(l *Latency) {
	n := len(l.Nodes)
	if n < 2 || n > mostNodes {
		return
	}
	t.title("Mean latency of loads from memory, by thread's node (rows) and memory's (columns); samples")
	head := table.Row{"node"}
	for j := range n {
		head = append(head, fmt.Sprint(j), "")
	}
	tab := newTableRow(head)
	for i := range n {
		row := table.Row{i}
		for j := range n {
			x := &l.Nodes[i][j]
			row = append(row, cycles(x.Mean), "("+compact(x.Samples)+")")
		}
		tab.AppendRow(row)
	}
	t.render(tab, 0)
}

// cycles prints a latency, "-" for none.
func cycles(c Pct) string {
	if math.IsNaN(float64(c)) {
		return "-"
	}
	return fmt.Sprintf("%.0f", float64(c))
}

// fewSamples is how many samples of the other nodes a line has that is not worth a row:
// data that one node makes and another reads now and then.
const fewSamples = 3

func (t *textWriter) lines(r *Report) {
	s := r.Lines
	if s == nil {
		return
	}
	worth := func(i int) bool { return s.Most[i].other > fewSamples }
	if !worth(0) && t.top > 0 {
		return
	}
	t.title("Cache lines shared between nodes")
	tab := newTable("object", "offset", "nodes", "sharing", "HITM", "samples", "used at")
	shown := t.rows(len(s.Most), worth)
	for _, i := range shown {
		x := &s.Most[i]
		tab.AppendRow(table.Row{short(x.Object, 20), x.Offset, short(topo.FormatList(x.Nodes), 6), x.Sharing, compact(x.HITM), compact(x.Loads + x.Stores), short(x.places(), 30)})
	}
	t.render(tab, 0)
	if more := s.Lines - len(shown); more > 0 {
		t.printf("  and at least %d more, with no more samples of other nodes each; --top 0 prints up to %d\n", more, mostLines)
	}
	t.wrapped("  ", "Lines come by the samples of other nodes than their main one. HITM: loads that found the line modified in another core's cache. Sharing is false where no node seems to use a byte that another writes (padding or another layout ends it), and ? where samples are too few to say so. Counts are samples, and about: a line's first store is not among them, and of an access only its first byte is known.")
}

// places is the code that uses the line, most samples first.
func (x *SharedLine) places() string {
	var list []string
	for _, u := range x.Users {
		if !slices.Contains(list, u.Place) {
			list = append(list, u.Place)
		}
	}
	return strings.Join(list[:min(len(list), 2)], ", ")
}
