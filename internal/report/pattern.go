package report

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/jedib0t/go-pretty/v6/table"

	"numaopt/internal/classify"
	"numaopt/internal/pattern"
	"numaopt/internal/shape"
	"numaopt/internal/units"
)

// findPatterns says of objects what each loop wants of them, of the first alone where
// that is enough, and returns of how many it does not say it.
func (b *builder) findPatterns(objects []Object, enough int) (left int) {
	rows, done := 0, 0
	for done < len(objects) && (enough == 0 || rows < enough) {
		batch := objects[done:min(done+runtime.GOMAXPROCS(0), len(objects))]
		var wait sync.WaitGroup
		for i := range batch {
			wait.Go(func() {
				x := b.finder.Find(batch[i].group)
				b.wanted(&batch[i], &x)
			})
		}
		wait.Wait()
		for i := range batch {
			rows += len(batch[i].Patterns)
		}
		done += len(batch)
	}
	for i := range objects[done:] {
		objects[done+i].Patterns = []Pattern{}
	}
	return len(objects) - done
}

// wanted says what each loop wants of an object.
func (b *builder) wanted(o *Object, x *classify.Patterns) {
	o.Patterns = []Pattern{}
	o.ShapeDoubt = x.Doubt
	if s := x.Shape; s != nil {
		o.Shape = &Shape{Dims: s.Dims, Elem: s.Elem, Source: string(s.Source), Variable: s.Variable, text: s.String()}
	}
	var all uint64
	for _, l := range x.Loops {
		all += l.Accesses
	}
	for _, l := range x.Loops {
		w := Pattern{
			Loop: b.regionName(l.Region), Merged: b.merged[l.Region], Pattern: string(l.Kind), Block: l.Block(), Period: l.Period, Nodes: append([]int{}, l.Order()...),
			Explains: Pct(100 * l.Explains), Confidence: Pct(100 * l.Confidence), Samples: l.Samples, Need: l.Need, DRAMPct: pct(l.Accesses, all),
		}
		if l.Kind == pattern.Single {
			w.Nodes = append(w.Nodes, l.Node)
		}
		o.Patterns = append(o.Patterns, w)
	}
	if o.Conflict = x.Is(); o.Conflict {
		o.ConflictText = conflictText(o.Patterns, x)
	}
}

// conflictText is the table of CGO'12 fig. 6 in a sentence: who wants what, and what
// that costs.
func conflictText(patterns []Pattern, x *classify.Patterns) string {
	var kinds []string
	loops := make(map[string][]string)
	for i, l := range x.Loops {
		if !l.Divides() {
			continue
		}
		kind := describe(&patterns[i])
		if loops[kind] == nil {
			kinds = append(kinds, kind)
		}
		if name := patterns[i].Loop; !slices.Contains(loops[kind], name) {
			loops[kind] = append(loops[kind], name)
		}
	}
	for i, kind := range kinds {
		kinds[i] = kind + ": " + strings.Join(loops[kind], ", ")
	}
	text := fmt.Sprintf("%s. One placement for all of them leaves %v of their accesses remote, one for each loop %v",
		strings.Join(kinds, "; "), Pct(100*x.Conflict.Together), Pct(100*x.Apart))
	if x.Together.Kind == pattern.BlockExclusive {
		text += "; together they use it block-exclusive"
	}
	return text + "."
}

// describe names a pattern where it is not clear from the kind alone.
func describe(w *Pattern) string {
	switch pattern.Kind(w.Pattern) {
	case pattern.Single:
		return fmt.Sprintf("node %d", w.Nodes[0])
	case pattern.BlockCyclic:
		return fmt.Sprintf("block-cyclic of %v", units.Bytes(w.Block))
	case pattern.Inverse, pattern.Permuted:
		return fmt.Sprintf("%s every %v", w.Pattern, units.Bytes(w.Period))
	}
	return w.Pattern
}

// patterns prints what the loops want of each object, and where they disagree.
func (t *textWriter) patterns(r *Report) {
	tab := newTable("object\n ", "loop\n ", "wants\n ", "block\n ", r.head(), "fits\n%", "sure\n%")
	rows, more := 0, 0
	var notes, merged []string
	for i := range r.Objects {
		o := &r.Objects[i]
		if len(o.Patterns) == 0 {
			continue
		}
		if t.top > 0 && (rows >= t.top || o.DRAMPct < tiny) {
			more += len(o.Patterns)
			continue
		}
		name := short(o.Name, 20)
		if text := shapeText(o); text != "" {
			notes = append(notes, o.Name+": "+text)
		}
		if o.Conflict {
			notes = append(notes, "Conflict over "+o.Name+": "+o.ConflictText)
		}
		for _, w := range o.Patterns {
			if text := fmt.Sprintf("%s is the loops of lines %s, which gcc merged: it wants what all of them do together.", w.Loop, joined(w.Merged)); len(w.Merged) > 0 && !slices.Contains(merged, text) {
				merged = append(merged, text)
			}
			tab.AppendRow(wantRow(name, &w))
			name = ""
			rows++
		}
	}
	if rows == 0 {
		return
	}
	t.title("What the loops want of the objects")
	t.render(tab, more)
	if r.Unsought > 0 {
		t.printf("  and those of %s: --top 0 prints all\n", numbered(r.Unsought, "more object"))
	}
	t.wrapped("  ", "block: a node's part; "+r.unit()+": the loop's share of the object's; fits: its accesses from nodes that the pattern gives the page to, or a part of it; sure: that this is neither chance nor another pattern, ? where that is likelier than 5 %, as with few pages.")
	for _, s := range append(merged, notes...) {
		t.wrapped("  ", s)
	}
}

// shapeText is the array behind an object and where that is known from, or why it is
// not; empty for what says nothing: one dimension, as declared.
func shapeText(o *Object) string {
	s := o.Shape
	switch {
	case s == nil && o.ShapeDoubt == "":
		return ""
	case s == nil:
		return "its shape is not known: " + o.ShapeDoubt + "; --shape says it"
	case len(s.Dims) == 1 && s.Source == string(shape.Declared) && o.ShapeDoubt == "":
		return ""
	case o.ShapeDoubt == "" && s.Variable != "" && !strings.HasPrefix(o.Name, s.Variable+" "):
		return fmt.Sprintf("%s, %s (%s)", s.Variable, s.text, s.Source)
	case o.ShapeDoubt == "":
		return fmt.Sprintf("%s (%s)", s.text, s.Source)
	}
	return fmt.Sprintf("%s (%s; %s)", s.text, s.Source, o.ShapeDoubt)
}

func wantRow(name string, w *Pattern) table.Row {
	block, wants := "", w.Pattern
	if w.Block > 0 {
		block = units.Bytes(w.Block).String()
	}
	switch pattern.Kind(w.Pattern) {
	case pattern.Single:
		wants = describe(w)
	case pattern.NotEnough:
		wants = fmt.Sprintf("? of %s samples", compact(w.Samples))
	}
	sure := cell(w.Confidence)
	if float64(w.Confidence) < 100*pattern.MinConfidence {
		sure = "?"
	}
	return table.Row{name, short(w.Loop, 24), wants, block, cell(w.DRAMPct), cell(w.Explains), sure}
}
