package html

import (
	"fmt"
	"strings"

	"numaopt/internal/pattern"
	"numaopt/internal/profile"
	"numaopt/internal/report"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// share is the heading of a share of all DRAM accesses.
func share(r *report.Report) heading {
	if r.Run.Source == "faults" {
		return heading{"faults %", "share of the program's page faults", true}
	}
	return heading{"DRAM %", "share of the program's DRAM accesses", true}
}

func objects(in *Input) *table {
	r := in.Report
	t := &table{ID: "objects", Caption: "Objects", Columns: []heading{
		{"object", "what a person recognises; a click shows its map", false},
		{"kind", "heap, global, mapping, small, stack, image, unknown", false},
		{"size", "the most that was allocated at one time", true},
		share(r),
		{"remote %", "of its own DRAM accesses, those served by another node's memory", true},
		{"with plan %", "the same as the plan predicts it; empty: not in the plan", true},
		{"best %", "remote with each page on the node that uses it most", true},
		{"shared %", "of its bytes, those touched from several nodes", true},
		{"even %", "of its bytes, those that no node uses much more than the others", true},
		{"latency cost %", "cycles of remote loads beyond local ones, in per cent of all latency", true},
		{"homes", "nodes that hold its pages", false},
	}}
	planned := predictions(in.Plan)
	costs := make(map[string]cell)
	if r.Latency != nil {
		for _, x := range r.Latency.Objects {
			if x.Cost != nil {
				costs[x.Name] = percent(*x.Cost)
			}
		}
	}
	return t.fill(len(r.Objects), func(i int) row {
		o := &r.Objects[i]
		n := name(o.Name)
		if o.Instances > 1 && !profile.Kind(o.Kind).Private() {
			n.Text += fmt.Sprintf(" ×%d", o.Instances)
		}
		kind := o.Kind
		if o.Placed {
			kind += ", placed by the program"
		}
		return row{Pick: i + 1, Cells: []cell{
			n, {Text: kind}, number(o.Bytes, units.Bytes(o.Bytes).String()),
			percent(o.DRAMPct), percent(o.RemoteDRAM), planned[o.Name], percent(o.BestPlacement), percent(o.UniformlyShared), percent(o.EvenlyUsed),
			costs[o.Name], homes(o.HomePages, o.UnknownPages),
		}}
	}, func(i int) report.Pct { return r.Objects[i].DRAMPct })
}

func loops(r *report.Report) *table {
	t := &table{ID: "loops", Caption: "Loops, and functions outside loops", Columns: []heading{
		{"loop", "parallel loop, or function outside all loops", false},
		{"kind", "dynamic: work is handed out at run time", false},
		{"entries", "how often a team entered it", true},
		{"threads", "that made its accesses", true},
		share(r),
		{"remote %", "of its own DRAM accesses", true},
		{"all remote %", "of its accesses of all levels", true},
	}}
	return t.fill(len(r.Loops), func(i int) row {
		l := &r.Loops[i]
		kind := l.Kind
		if l.Dynamic {
			kind += ", dynamic"
		}
		entries := ""
		if l.Entries > 0 {
			entries = quantity(l.Entries)
		}
		return row{Cells: []cell{
			name(l.Name), {Text: kind}, number(l.Entries, entries), number(l.Threads, fmt.Sprint(l.Threads)),
			percent(l.DRAMPct), percent(l.RemoteDRAM), percent(l.RemoteAccess),
		}}
	}, func(i int) report.Pct { return r.Loops[i].DRAMPct })
}

func threads(r *report.Report) *table {
	t := &table{ID: "threads", Caption: "Threads", Columns: []heading{
		{"thread", "rank", true}, {"CPU", "", true}, {"node", "of the CPU", true},
		share(r), {"remote %", "of its own DRAM accesses", true},
	}}
	return t.fill(len(r.Threads), func(i int) row {
		x := &r.Threads[i]
		return row{Cells: []cell{
			number(x.Rank, fmt.Sprint(x.Rank)), number(x.CPU, fmt.Sprint(x.CPU)), number(x.Node, fmt.Sprint(x.Node)),
			percent(x.DRAMPct), percent(x.RemoteDRAM),
		}}
	}, func(i int) report.Pct { return r.Threads[i].DRAMPct })
}

func firstTouches(r *report.Report) *table {
	stacks := make(map[string][]string)
	for i := range r.Objects {
		stacks[r.Objects[i].Name] = r.Objects[i].Stack
	}
	t := &table{ID: "first", Caption: "First touches", Columns: []heading{
		{"object", "", false},
		{"allocated at", "call stack, innermost frame first", false},
		{"first touched at", "the code that put the pages where they are", false},
		{"by threads", "ranks", false},
		{"size", "of the pages first touched there", true},
		{"homes", "nodes that hold these pages", false},
		share(r),
		{"remote %", "of these", true},
	}}
	total := max(1, r.DRAMAccesses)
	part := func(i int) report.Pct { return report.Pct(100 * float64(r.FirstTouch[i].DRAM) / float64(total)) }
	return t.fill(len(r.FirstTouch), func(i int) row {
		f := &r.FirstTouch[i]
		place, ranks := f.Place, f.Ranks
		if f.Loop != "" && f.Loop != f.Place && !f.Serial {
			place += " in " + f.Loop
		}
		if f.Serial {
			ranks += ", serial"
		}
		known := 0
		for _, n := range f.HomePages {
			known += n
		}
		return row{Cells: []cell{
			name(f.Object), path(stacks[f.Object]), name(place), {Text: middle(ranks, 40)},
			number(f.Bytes, units.Bytes(f.Bytes).String()), homes(f.HomePages, f.Pages-known),
			percent(part(i)), percent(f.RemoteDRAM),
		}}
	}, part)
}

// path is a call stack, innermost frame first, as a cell has room for it.
func path(stack []string) cell {
	const frames = 3
	if len(stack) <= frames {
		return cell{Text: whole(stack)}
	}
	return cell{Text: whole(stack[:frames]) + " ← …", Title: whole(stack)}
}

// whole is all of a call stack.
func whole(stack []string) string {
	var frames []string
	for _, f := range stack {
		frames = append(frames, middle(f, longName))
	}
	return middle(strings.Join(frames, " ← "), longest)
}

// wants is how each loop divides each object over the nodes.
func wants(r *report.Report) *table {
	t := &table{ID: "wants", Caption: "What the loops want of the objects", Columns: []heading{
		{"object", "", false},
		{"loop", "", false},
		{"wants", "how the loop divides the object over the nodes (CGO'12 §3.1)", false},
		{"block", "a node's part", true},
		{"of the object %", "the loop's share of its DRAM accesses by parallel code", true},
		{"fits %", "accesses from nodes that the pattern gives the page to", true},
		{"sure %", "that this is neither chance nor another pattern", true},
		{"conflict", "loops want placements that exclude each other", false},
	}}
	if r.Unsought > 0 {
		t.Caption += fmt.Sprintf(" (%d objects that are used less were not looked at: report --format json has all)", r.Unsought)
	}
	type want struct {
		o *report.Object
		w *report.Pattern
	}
	var list []want
	for i := range r.Objects {
		for k := range r.Objects[i].Patterns {
			list = append(list, want{&r.Objects[i], &r.Objects[i].Patterns[k]})
		}
	}
	return t.fill(len(list), func(i int) row {
		o, w := list[i].o, list[i].w
		block, conflict := "", ""
		if w.Block > 0 {
			block = units.Bytes(w.Block).String()
		}
		if o.Conflict {
			conflict = "yes"
		}
		return row{Cells: []cell{
			name(o.Name), name(w.Loop), {Text: wish(w)}, number(w.Block, block),
			percent(w.DRAMPct), percent(w.Explains), sure(w), {Text: conflict},
		}}
	}, func(i int) report.Pct { return list[i].o.DRAMPct })
}

func wish(w *report.Pattern) string {
	switch {
	case w.Pattern == string(pattern.Single) && len(w.Nodes) > 0:
		return fmt.Sprintf("node %d", w.Nodes[0])
	case w.Pattern == string(pattern.NotEnough):
		return fmt.Sprintf("? of %d samples, %d would do", w.Samples, w.Need)
	}
	return w.Pattern
}

func sure(w *report.Pattern) cell {
	c := percent(w.Confidence)
	if float64(w.Confidence) < 100*pattern.MinConfidence {
		c.Text, c.Bar = "?", 0
	}
	return c
}

// conflict is an object that loops want to have in different places.
type conflict struct{ Object, Text string }

func conflicts(r *report.Report) []conflict {
	var list []conflict
	for i := range r.Objects {
		if o := &r.Objects[i]; o.Conflict && len(list) < mostRows/10 {
			list = append(list, conflict{middle(o.Name, longName), middle(o.ConflictText, 2*longest)})
		}
	}
	return list
}

// lines is the cache lines that nodes share.
func lines(r *report.Report) *table {
	s := r.Lines
	if s == nil {
		return nil
	}
	t := &table{ID: "lines", Caption: "Cache lines shared between nodes", Columns: []heading{
		{"object", "", false}, {"offset", "of the line's first byte in the object", true},
		{"nodes", "that use it", false},
		{"sharing", "false: no node seems to use a byte that another writes", false},
		{"HITM", "samples of loads that found the line modified in another core's cache", true},
		{"loads", "samples", true}, {"stores", "samples", true},
		{"used at", "", false},
	}}
	t.fill(len(s.Most), func(i int) row {
		l := &s.Most[i]
		return row{Cells: []cell{
			name(l.Object), number(l.Offset, fmt.Sprint(l.Offset)), {Text: topo.FormatList(l.Nodes)}, {Text: l.Sharing},
			number(l.HITM, quantity(l.HITM)), number(l.Loads, quantity(l.Loads)), number(l.Stores, quantity(l.Stores)), users(l),
		}}
	}, func(int) report.Pct { return 0 })
	if more := s.Lines - len(t.Rows); more > 0 {
		t.More = fmt.Sprintf("%d more lines are left out, those with fewest samples of other nodes.", more)
	}
	return t
}

// users is the code that uses a line, each with its nodes.
func users(l *report.SharedLine) cell {
	text := ""
	for i, u := range l.Users {
		if i == 6 {
			text += "; …"
			break
		}
		if i > 0 {
			text += "; "
		}
		text += fmt.Sprintf("node %d %s: %d loads, %d stores", u.Node, middle(u.Place, longName), u.Loads, u.Stores)
	}
	return cell{Text: text}
}
