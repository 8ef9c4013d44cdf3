package symbol

import (
	"debug/dwarf"
	"sort"
	"strings"

	"numaopt/internal/ident"
)

// Code describes the instruction at vaddr. The result's Module is -1: modules
// count in somebody else's list. Outlined loops bear the name of the function
// that contains them.
func (m *Module) Code(vaddr uint64) ident.Code {
	c := ident.Code{Module: -1, Offset: vaddr}
	if f, ok := m.FunctionAt(vaddr); ok {
		c.Symbol = f.Symbol
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.load()
	u := d.unitAt(vaddr)
	if u == nil {
		return c
	}
	c.Inlined, _ = d.locations(u, vaddr)
	if len(c.Inlined) == 0 {
		if r, ok := u.rowAt(vaddr); ok && r.file >= 0 {
			c.Inlined = []ident.Location{{Function: Demangle(c.Symbol), File: u.file(r.file), Line: r.line}}
		}
	}
	return c
}

// ReturnSite describes the call that returns to vaddr; Offset is vaddr itself.
func (m *Module) ReturnSite(vaddr uint64) ident.Code {
	if vaddr == 0 {
		return ident.Code{Module: -1}
	}
	c := m.Code(vaddr - 1)
	c.Offset = vaddr
	return c
}

// rowAt returns the line of pc.
func (u *unit) rowAt(pc uint64) (row, bool) {
	i := sort.Search(len(u.rows), func(i int) bool { return u.rows[i].addr > pc })
	if i == 0 || u.rows[i-1].end {
		return row{file: -1}, false
	}
	return u.rows[i-1], true
}

// chainAt returns the scopes that pc lies in, innermost first.
func (u *unit) chainAt(pc uint64) []int {
	top := -1
	i := sort.Search(len(u.tops), func(i int) bool { return u.tops[i].lo > pc })
	for n := 0; i > 0 && n < 8 && top < 0; n++ {
		i--
		if pc < u.tops[i].hi {
			top = u.tops[i].scope
		}
	}
	if top < 0 {
		return nil
	}
	chain := []int{top}
	for down := true; down; {
		down = false
		for _, s := range u.scopes[chain[0]].children {
			if contains(u.scopes[s].ranges, pc) {
				chain, down = append([]int{s}, chain...), true
				break
			}
		}
	}
	return chain
}

// Columns returns the columns of Code(vaddr).Inlined, in bytes from 1; 0 is not known.
func (m *Module) Columns(vaddr uint64) (columns []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.load()
	if u := d.unitAt(vaddr); u != nil {
		if _, columns = d.locations(u, vaddr); columns == nil {
			r, _ := u.rowAt(vaddr)
			columns = []int{r.col}
		}
	}
	return columns
}

// locations returns the source locations of pc and their columns, innermost first.
func (d *debugInfo) locations(u *unit, pc uint64) (out []ident.Location, columns []int) {
	chain := u.chainAt(pc)
	if len(chain) == 0 {
		return nil, nil
	}
	r, _ := u.rowAt(pc)
	file, line, col := u.file(r.file), r.line, r.col
	for k, s := range chain {
		sc := &u.scopes[s]
		l := d.location(u, sc, file, line)
		// clang inlines the body of a loop into the outlined function proper: one
		// place of the source, not two.
		wrapper := k > 0 && d.isLoop(u, sc) && d.isLoop(u, &u.scopes[chain[k-1]])
		if !wrapper {
			out, columns = append(out, l), append(columns, col)
		}
		file, line, col = u.file(sc.callFile), sc.callLine, sc.callCol
	}
	return out, columns
}

// location is the line of a file in a scope.
func (d *debugInfo) location(u *unit, s *scope, file string, line int) ident.Location {
	l := ident.Location{File: file, Line: line}
	fn := d.subprogramOf(u, s)
	if fn == nil {
		return l
	}
	name, declFile, declLine := d.describe(u, fn)
	l.Function = name
	if declFile == file || file == "" {
		l.FunctionLine = declLine
	}
	return l
}

// isLoop reports whether a scope is an outlined loop or its body.
func (d *debugInfo) isLoop(u *unit, s *scope) bool {
	fn := d.subprogramOf(u, s)
	for n := 0; fn != nil && n < 8; n++ {
		if fn.outlined {
			return true
		}
		fn = d.referred(fn)
	}
	return false
}

// subprogramOf returns the function that a scope is of, or nil.
func (d *debugInfo) subprogramOf(u *unit, s *scope) *subprogram {
	if s.of == nil {
		s.of = d.subprogramAt(u, s.origin)
	}
	return s.of
}

// subprogramAt returns the subprogram entry at off, perhaps of another unit.
func (d *debugInfo) subprogramAt(u *unit, off dwarf.Offset) *subprogram {
	if !u.split && (off < u.off || off >= u.end) {
		if u = d.unitOf(off); u == nil {
			return nil
		}
	}
	return u.subprograms[off]
}

// referred returns the entry that fn is specified by or a copy of, or nil.
func (d *debugInfo) referred(fn *subprogram) *subprogram {
	if fn.refers == 0 {
		return nil
	}
	u := fn.split
	if u == nil {
		u = d.unitOf(fn.refers)
	}
	if u == nil {
		return nil
	}
	return u.subprograms[fn.refers]
}

// describe returns a function's name as a person knows it, and where it is
// declared. An outlined loop, and what else a compiler makes of a directive, is
// described as the function that contains it.
func (d *debugInfo) describe(u *unit, fn *subprogram) (name, file string, line int) {
	if fn.outlined || isHelper(fn.linkage) {
		if in := d.container(u, fn); in != nil && in != fn {
			return d.describe(u, in)
		}
		name = Demangle(fn.name)
		if IsLoop(name) {
			name = ""
		}
		return name, "", 0
	}
	var plain, linkage string
	at := fn
	for n := 0; at != nil && n < 8; n++ {
		if linkage == "" {
			linkage = at.linkage
		}
		if plain == "" && at.name != "" {
			plain = at.prefix + at.name
		}
		if line == 0 {
			line, file = at.line, at.file
		} else if file == "" {
			file = at.file
		}
		at = d.referred(at)
	}
	if strings.HasPrefix(linkage, "_Z") || strings.HasPrefix(linkage, "_R") {
		return Demangle(linkage), file, line
	}
	if plain == "" {
		plain = Demangle(linkage)
	}
	return plain, file, line
}

// container returns the function that contains an outlined loop: the entry that
// gcc nests it in, or for clang, which does not, the last function of the file
// that starts before the loop.
func (d *debugInfo) container(u *unit, fn *subprogram) *subprogram {
	if fn.parent != nil {
		return fn.parent
	}
	var best *subprogram
	for _, s := range u.subprograms {
		if s.outlined || s.helper || s.declared || s.line == 0 || s.line > fn.line || s.file != fn.file || s.name == "" && s.linkage == "" && s.refers == 0 {
			continue
		}
		if best == nil || s.line > best.line {
			best = s
		}
	}
	return best
}

// loopLine returns the line of the pragma of the outlined function at vaddr: what
// its entry says it is declared at (clang), else the line of its first
// instruction (gcc). 0 is not known.
func (m *Module) loopLine(vaddr uint64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.load()
	u := d.unitAt(vaddr)
	if u == nil {
		return 0
	}
	chain := u.chainAt(vaddr)
	if len(chain) > 0 {
		if fn := u.scopes[chain[len(chain)-1]].of; fn != nil && fn.line > 0 {
			return fn.line
		}
	}
	r, _ := u.rowAt(vaddr)
	return r.line
}

// ReturnsNothing reports whether debug information says of the function around vaddr
// that it returns no value: a C function that is void, a subroutine of Fortran.
func (m *Module) ReturnsNothing(vaddr uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.load()
	u := d.unitAt(vaddr)
	if u == nil {
		return false
	}
	chain := u.chainAt(vaddr)
	if len(chain) == 0 {
		return false
	}
	fn := u.scopes[chain[len(chain)-1]].of
	known := fn != nil
	for n := 0; fn != nil && n < 8; n++ {
		if fn.returns {
			return false
		}
		fn = d.referred(fn)
	}
	return known && fn == nil
}
