package symbol

import (
	"path/filepath"
	"sort"

	"numaopt/internal/ident"
)

// LineRanges returns the addresses [lo, hi) of the code that comes from a line
// of a file in a function, inlined copies included, by ascending lo. Files are
// compared by their base names, as a build elsewhere has other directories; where
// several files fit, only the one with the very path counts, and none if there
// is none.
func (m *Module) LineRanges(function, file string, line int) [][2]uint64 {
	return m.ChainRanges([]ident.Location{{Function: function, File: file, Line: line}})
}

// ChainRanges is LineRanges for a chain of inlined locations, innermost first,
// each inlined at the next; the chain may stop before its outermost function. A
// location with a FunctionLine is searched at the same distance from the
// function's beginning, so that edits above the function do not matter.
func (m *Module) ChainRanges(chain []ident.Location) [][2]uint64 {
	if len(chain) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.load()
	base := filepath.Base(chain[0].File)
	byFile := make(map[string][][2]uint64)
	for _, u := range d.units {
		d.lines(u)
		if u.mentions(base) {
			d.parse(u)
			d.chainRanges(u, chain, byFile)
		}
	}
	found := byFile[chain[0].File]
	if found == nil && len(byFile) == 1 {
		for _, r := range byFile {
			found = r
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i][0] < found[j][0] })
	return found
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

// chainRanges adds the ranges of a unit that fit chain to byFile.
func (d *debugInfo) chainRanges(u *unit, chain []ident.Location, byFile map[string][][2]uint64) {
	children := make(map[int][]int)
	for i, s := range u.scopes {
		if s.parent >= 0 {
			children[s.parent] = append(children[s.parent], i)
		}
	}
	for i := range u.scopes {
		fn := d.subprogramOf(u, &u.scopes[i])
		if fn == nil {
			continue
		}
		name, declFile, declLine := d.describe(u, fn)
		if name != chain[0].Function || !d.inlinedAt(u, i, chain) {
			continue
		}
		own := u.scopes[i].ranges
		for _, c := range children[i] {
			own = minus(own, u.scopes[c].ranges)
		}
		for _, r := range own {
			u.rowsIn(r, func(file string, line int, lo, hi uint64) {
				if sameLine(chain[0], file, line, declFile, declLine) {
					byFile[file] = join(byFile[file], lo, hi)
				}
			})
		}
	}
}

// inlinedAt reports whether scope i is inlined where the rest of chain says.
func (d *debugInfo) inlinedAt(u *unit, i int, chain []ident.Location) bool {
	for _, want := range chain[1:] {
		s := &u.scopes[i]
		if s.parent < 0 {
			return false
		}
		if up := s.parent; d.isLoop(u, s) && d.isLoop(u, &u.scopes[up]) {
			s, i = &u.scopes[up], up // see locations: the two are one place
			if s.parent < 0 {
				return false
			}
		}
		i = s.parent
		fn := d.subprogramOf(u, &u.scopes[i])
		if fn == nil {
			return false
		}
		name, declFile, declLine := d.describe(u, fn)
		if name != want.Function || !sameLine(want, u.file(s.callFile), s.callLine, declFile, declLine) {
			return false
		}
	}
	return true
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

// join adds [lo, hi) to ranges, to the last one where they touch.
func join(ranges [][2]uint64, lo, hi uint64) [][2]uint64 {
	if n := len(ranges); n > 0 && ranges[n-1][1] == lo {
		ranges[n-1][1] = hi
		return ranges
	}
	return append(ranges, [2]uint64{lo, hi})
}
