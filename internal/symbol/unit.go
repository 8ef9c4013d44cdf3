package symbol

import (
	"debug/dwarf"
	"path/filepath"
	"sort"
)

// unit is one compilation unit.
type unit struct {
	root     *dwarf.Entry
	off, end dwarf.Offset
	data     *dwarf.Data // the entries' once parsed: the module's, or of a .dwo file
	split    bool        // of a .dwo file, whose offsets are its own
	ranges   [][2]uint64

	files     []string // nil until lines are read
	linesRead bool
	rows      []row // by ascending address

	parsed      bool
	subprograms map[dwarf.Offset]*subprogram
	scopes      []scope // parents before children
	tops        []top   // subprograms' code by ascending lo
}

// row says that the code from addr to the next row comes from a line.
type row struct {
	addr uint64
	file int // index in unit.files, -1 is none
	line int
	col  int  // from 1, in bytes; 0 is not known
	end  bool // no code from here to the next row
}

// subprogram is one DW_TAG_subprogram entry.
type subprogram struct {
	name, linkage string
	prefix        string      // "ns::Class::"
	parent        *subprogram // that it is nested in, nil is none
	file          string
	line          int // of its declaration, 0 is none
	refers        dwarf.Offset
	split         *unit // that refers is an offset in; nil: in the module's data
	hasCode       bool
	outlined      bool // an outlined parallel region
	returns       bool // a value
	// helper is true for a function that a compiler made for a construct of the
	// source, as clang's .omp.reduction.reduction_func and .omp_task_entry.
	helper bool
	// declared is true where the unit only declares it, outside of classes.
	declared bool
}

// scope is a subprogram, or an inlined copy of one, with code.
type scope struct {
	parent   int          // index in unit.scopes of what it is inlined in, -1 is none
	children []int        // what is inlined in it
	of       *subprogram  // nil for an inlined copy until resolved
	origin   dwarf.Offset // of an inlined copy
	ranges   [][2]uint64
	callFile int
	callLine int
	callCol  int
}

// top is a code range of a scope without parent.
type top struct {
	lo, hi uint64
	scope  int
}

// parse reads the unit's functions, once. What is broken ends the reading.
func (d *debugInfo) parse(u *unit) {
	if u.parsed {
		return
	}
	u.parsed = true
	u.subprograms = make(map[dwarf.Offset]*subprogram)
	d.lines(u)
	u.data = d.data
	if rest := d.splitOf(u); rest != nil {
		u.data, u.split = rest, true
	}
	var err error
	func() {
		defer guard(&err, "")
		d.walk(u)
	}()
	for i, s := range u.scopes {
		if s.parent < 0 {
			for _, r := range s.ranges {
				u.tops = append(u.tops, top{r[0], r[1], i})
			}
			continue
		}
		in := &u.scopes[s.parent]
		in.children = append(in.children, i)
	}
	sort.SliceStable(u.tops, func(i, j int) bool { return u.tops[i].lo < u.tops[j].lo })
}

// walker is where a walk through the entries of a unit is.
type walker struct {
	prefix string
	fn     *subprogram
	scope  int
}

// walk reads the entries of a unit.
func (d *debugInfo) walk(u *unit) {
	r := u.data.Reader()
	if !u.split {
		r.Seek(u.off)
	}
	stack := []walker{}
	at := walker{scope: -1}
	for {
		e, err := r.Next()
		if err != nil || e == nil || !u.split && e.Offset >= u.end {
			return
		}
		if e.Tag == 0 {
			if len(stack) == 0 {
				return
			}
			at, stack = stack[len(stack)-1], stack[:len(stack)-1]
			if len(stack) == 0 {
				return
			}
			continue
		}
		next, enter := d.enter(u, e, at)
		if !e.Children {
			if len(stack) == 0 {
				return
			}
			continue
		}
		if !enter {
			r.SkipChildren()
			continue
		}
		stack = append(stack, at)
		at = next
	}
}

// enter takes note of an entry; it returns the state inside of it and whether
// its children matter.
func (d *debugInfo) enter(u *unit, e *dwarf.Entry, at walker) (walker, bool) {
	switch e.Tag {
	case dwarf.TagCompileUnit, dwarf.TagPartialUnit, dwarf.TagLexDwarfBlock, dwarf.TagTryDwarfBlock, dwarf.TagCatchDwarfBlock:
		return at, true
	case dwarf.TagNamespace, dwarf.TagModule, dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType, dwarf.TagInterfaceType:
		at.prefix += scopeName(e)
		return at, true
	case dwarf.TagSubprogram:
		s := u.subprogram(e, at)
		u.subprograms[e.Offset] = s
		at = walker{prefix: at.prefix, fn: s, scope: -1}
		if ranges, _ := u.data.Ranges(e); len(ranges) > 0 {
			s.hasCode = true
			u.scopes = append(u.scopes, scope{parent: -1, of: s, ranges: ranges})
			at.scope = len(u.scopes) - 1
		}
		return at, true
	case dwarf.TagInlinedSubroutine:
		ranges, _ := u.data.Ranges(e)
		origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if at.scope < 0 || !ok || len(ranges) == 0 {
			return at, false
		}
		u.scopes = append(u.scopes, scope{
			parent: at.scope, origin: origin, ranges: ranges,
			callFile: intVal(e, dwarf.AttrCallFile, -1), callLine: intVal(e, dwarf.AttrCallLine, 0), callCol: intVal(e, dwarf.AttrCallColumn, 0),
		})
		at.scope = len(u.scopes) - 1
		return at, true
	}
	return at, false
}

// scopeName is what a namespace, class or module puts before the names in it.
func scopeName(e *dwarf.Entry) string {
	name, _ := e.Val(dwarf.AttrName).(string)
	switch {
	case name != "":
		return name + "::"
	case e.Tag == dwarf.TagNamespace:
		return "(anonymous namespace)::" // as demanglers have it
	}
	return ""
}

// subprogram reads the attributes of a DW_TAG_subprogram.
func (u *unit) subprogram(e *dwarf.Entry, at walker) *subprogram {
	s := &subprogram{prefix: at.prefix, parent: at.fn}
	s.name, _ = e.Val(dwarf.AttrName).(string)
	s.linkage, _ = e.Val(dwarf.AttrLinkageName).(string)
	s.line = intVal(e, dwarf.AttrDeclLine, 0)
	s.file = u.file(intVal(e, dwarf.AttrDeclFile, -1))
	for _, attr := range []dwarf.Attr{dwarf.AttrSpecification, dwarf.AttrAbstractOrigin} {
		if off, ok := e.Val(attr).(dwarf.Offset); ok {
			s.refers = off
		}
	}
	if u.split {
		s.split = u
	}
	s.returns = e.AttrField(dwarf.AttrType) != nil
	s.outlined = IsLoop(s.name) || IsLoop(s.linkage)
	artificial, _ := e.Val(dwarf.AttrArtificial).(bool)
	s.helper = artificial || isHelper(s.name) || isHelper(s.linkage)
	declaration, _ := e.Val(dwarf.AttrDeclaration).(bool)
	s.declared = declaration && s.prefix == ""
	return s
}

// file returns the path of a file number of the unit, empty if there is none.
func (u *unit) file(n int) string {
	if n < 0 || n >= len(u.files) {
		return ""
	}
	return u.files[n]
}

// lines reads the unit's line table, once.
func (d *debugInfo) lines(u *unit) {
	if u.linesRead {
		return
	}
	u.linesRead = true
	var err error
	defer guard(&err, "")
	r, err := d.data.LineReader(u.root)
	if err != nil || r == nil {
		return
	}
	u.readRows(r)
	sort.SliceStable(u.rows, func(i, j int) bool {
		a, b := u.rows[i], u.rows[j]
		if a.addr != b.addr {
			return a.addr < b.addr
		}
		return a.end && !b.end // one sequence ends where another begins
	})
}

// readRows appends the rows of the sequences that belong to code of the unit;
// those of code that the linker dropped start at 0 or all ones.
func (u *unit) readRows(r *dwarf.LineReader) {
	files := make(map[*dwarf.LineFile]int)
	// clang gives sources in a folder below it by that folder alone.
	built, _ := u.root.Val(dwarf.AttrCompDir).(string)
	name := func() {
		for i, f := range r.Files() {
			if i < len(u.files) {
				continue
			}
			path := ""
			if f != nil {
				path = filepath.Clean(f.Name)
				if !filepath.IsAbs(path) {
					path = filepath.Join(built, path)
				}
				files[f] = i
			}
			u.files = append(u.files, path)
		}
	}
	name()
	var sequence []row
	var e dwarf.LineEntry
	for r.Next(&e) == nil {
		name()
		file := -1
		if i, ok := files[e.File]; ok {
			file = i
		}
		sequence = append(sequence, row{addr: e.Address, file: file, line: e.Line, col: e.Column, end: e.EndSequence})
		if e.EndSequence {
			if u.covers(sequence[0].addr) {
				u.rows = append(u.rows, sequence...)
			}
			sequence = nil
		}
	}
}

// covers reports whether pc is code of the unit, as far as the unit says.
func (u *unit) covers(pc uint64) bool {
	if len(u.ranges) == 0 {
		return pc != 0 && pc != ^uint64(0)
	}
	return contains(u.ranges, pc)
}

// contains reports whether pc is in one of ranges.
func contains(ranges [][2]uint64, pc uint64) bool {
	for _, r := range ranges {
		if r[0] <= pc && pc < r[1] {
			return true
		}
	}
	return false
}

// intVal returns a numeric attribute, or otherwise.
func intVal(e *dwarf.Entry, attr dwarf.Attr, otherwise int) int {
	if v, ok := e.Val(attr).(int64); ok && v >= 0 && v < 1<<31 {
		return int(v)
	}
	return otherwise
}
