package symbol

import (
	"path/filepath"
	"sort"

	"numaopt/internal/ident"
)

// Span is code [Lo, Hi) that comes from a chain of places.
type Span struct {
	Lo, Hi uint64
	// Places is how many places of the chain the code stands for: the first one
	// and those that it is inlined at.
	Places int
}

// Spans returns the code of the first place of chain, which is the places of a
// call stack, innermost first. Where that code is inlined, the places that it is
// inlined at must follow in chain; places in headers of the system may be left
// out there. What the rest of the chain says is not looked at.
//
// Files are compared by their base names, as a build elsewhere has other
// directories; where several fit, only the very path counts, and none if it is
// not there. A place with a FunctionLine is looked for at the same distance from
// the beginning of its function, so that edits above that do not matter.
func (m *Module) Spans(chain []ident.Location) []Span {
	if len(chain) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.load()
	base := filepath.Base(chain[0].File)
	byFile := make(map[string][]Span)
	for _, u := range d.units {
		d.lines(u)
		if u.mentions(base) {
			d.parse(u)
			d.spans(u, chain, byFile)
		}
	}
	found := byFile[chain[0].File]
	if found == nil && len(byFile) == 1 {
		for _, s := range byFile {
			found = s
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Lo < found[j].Lo })
	return found
}

// Lines returns the lines of a file that the code of the function at vaddr comes from,
// inlined code included; none where that is not known.
func (m *Module) Lines(file string, vaddr uint64) map[int]bool {
	f, ok := m.FunctionAt(vaddr)
	if !ok {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.load()
	u := d.unitAt(vaddr)
	if u == nil {
		return nil
	}
	lines := make(map[int]bool)
	u.rowsIn([2]uint64{f.Lo, f.Hi}, func(of string, line int, lo, hi uint64) {
		if of == file {
			lines[line] = true
		}
	})
	return lines
}

// mentions reports whether a file of the unit has this base name.
func (u *unit) mentions(base string) bool {
	for _, f := range u.files {
		if filepath.Base(f) == base {
			return true
		}
	}
	return false
}

// spans adds the spans of a unit that fit chain to byFile.
func (d *debugInfo) spans(u *unit, chain []ident.Location, byFile map[string][]Span) {
	for i := range u.scopes {
		fn := d.subprogramOf(u, &u.scopes[i])
		if fn == nil {
			continue
		}
		name, declFile, declLine := d.describe(u, fn)
		if name != chain[0].Function {
			continue
		}
		places, ok := d.inlinedAt(u, i, chain)
		if !ok {
			continue
		}
		own := u.scopes[i].ranges
		for _, c := range u.scopes[i].children {
			own = minus(own, u.scopes[c].ranges)
		}
		for _, r := range own {
			u.rowsIn(r, func(file string, line int, lo, hi uint64) {
				if sameLine(chain[0], file, line, declFile, declLine) {
					byFile[file] = join(byFile[file], Span{lo, hi, places})
				}
			})
		}
	}
}

// inlinedAt returns how many places of chain scope i and what it is inlined in
// stand for; false where chain says otherwise.
func (d *debugInfo) inlinedAt(u *unit, i int, chain []ident.Location) (places int, ok bool) {
	places = 1
	for s := &u.scopes[i]; s.parent >= 0; s = &u.scopes[s.parent] {
		in := &u.scopes[s.parent]
		if d.isLoop(u, s) && d.isLoop(u, in) {
			continue // see locations: the two are one place
		}
		at := d.location(u, in, u.file(s.callFile), s.callLine)
		if in.of == nil {
			return 0, false
		}
		_, declFile, declLine := d.describe(u, in.of)
		if places < len(chain) && at.Function == chain[places].Function &&
			sameLine(chain[places], at.File, at.Line, declFile, declLine) {
			places++
		} else if !at.System() {
			return 0, false
		}
	}
	return places, true
}

// sameLine reports whether a line of a file in a function declared at declLine
// is the one wanted.
func sameLine(want ident.Location, file string, line int, declFile string, declLine int) bool {
	if filepath.Base(want.File) != filepath.Base(file) {
		return false
	}
	if want.FunctionLine > 0 && declLine > 0 && declFile == file {
		return line-declLine == want.Line-want.FunctionLine
	}
	return line == want.Line
}

// rowsIn calls found for each stretch of r that has a line.
func (u *unit) rowsIn(r [2]uint64, found func(file string, line int, lo, hi uint64)) {
	i := sort.Search(len(u.rows), func(i int) bool { return u.rows[i].addr > r[0] })
	if i > 0 {
		i--
	}
	for ; i < len(u.rows) && u.rows[i].addr < r[1]; i++ {
		hi := r[1]
		if i+1 < len(u.rows) {
			hi = min(hi, u.rows[i+1].addr)
		}
		if lo := max(r[0], u.rows[i].addr); lo < hi && !u.rows[i].end {
			found(u.file(u.rows[i].file), u.rows[i].line, lo, hi)
		}
	}
}

// minus returns the parts of ranges that are in none of without.
func minus(ranges, without [][2]uint64) [][2]uint64 {
	for _, w := range without {
		var out [][2]uint64
		for _, r := range ranges {
			if w[1] <= r[0] || r[1] <= w[0] {
				out = append(out, r)
				continue
			}
			if r[0] < w[0] {
				out = append(out, [2]uint64{r[0], w[0]})
			}
			if w[1] < r[1] {
				out = append(out, [2]uint64{w[1], r[1]})
			}
		}
		ranges = out
	}
	return ranges
}

// join adds s to spans, to the last one where they touch.
func join(spans []Span, s Span) []Span {
	if n := len(spans); n > 0 && spans[n-1].Hi == s.Lo && spans[n-1].Places == s.Places {
		spans[n-1].Hi = s.Hi
		return spans
	}
	return append(spans, s)
}
