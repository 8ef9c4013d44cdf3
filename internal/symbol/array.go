package symbol

import (
	"debug/dwarf"
	"slices"
)

// Array is what the debug information says of an array.
type Array struct {
	Variable string // that is the array, or points to it
	// Dims are its dimensions in memory order, the slowest first, whatever the
	// language; 0 is not known before the program runs, as is the first of a
	// pointer's. Empty for a pointer to single elements.
	Dims []int64
	Elem int64 // bytes of an element, > 0
}

// maxTypes is how many entries a type may lead through: typedefs, qualifiers and
// arrays of arrays; broken debug information may go in circles.
const maxTypes = 32

// Arrays returns the arrays among the globals of detailBytes and more, by address.
// Those of a COMMON block are its members.
func (m *Module) Arrays() map[uint64]Array {
	arrays := make(map[uint64]Array)
	add := func(lo uint64, v *detail) {
		if a, ok := m.array(v.kind); ok && len(a.Dims) > 0 {
			a.Variable = v.name
			arrays[lo] = a
		}
	}
	for lo, v := range m.details() {
		if !v.common {
			add(lo, v)
		}
		for _, member := range v.members {
			if member.size >= detailBytes {
				add(member.lo, member)
			}
		}
	}
	return arrays
}

// array reads the type at off.
func (m *Module) array(off dwarf.Offset) (a Array, ok bool) {
	var err error
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard(&err, m.path)
	d := m.load()
	if off == 0 || d.data == nil {
		return Array{}, false
	}
	return d.array(off)
}

// array reads the type at off: an array, of arrays perhaps, or a pointer to one or
// to its first element.
func (d *debugInfo) array(off dwarf.Offset) (a Array, ok bool) {
	pointer := false
	for range maxTypes {
		r := d.data.Reader()
		r.Seek(off)
		e, err := r.Next()
		if err != nil || e == nil {
			return Array{}, false
		}
		next, hasNext := e.Val(dwarf.AttrType).(dwarf.Offset)
		switch e.Tag {
		case dwarf.TagPointerType:
			if pointer || len(a.Dims) > 0 {
				a.Elem = 8 // an array of pointers
				return a, true
			}
			pointer = true
		case dwarf.TagArrayType:
			a.Dims = append(a.Dims, d.dims(r, d.fortran(off))...)
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType:
		case dwarf.TagStructType, dwarf.TagClassType:
			// std::array is a structure around one.
			if next, hasNext = d.onlyMember(r); hasNext {
				break
			}
			fallthrough
		default:
			a.Elem, _ = e.Val(dwarf.AttrByteSize).(int64)
			if pointer && len(a.Dims) > 0 {
				a.Dims = append([]int64{0}, a.Dims...)
			}
			return a, a.Elem > 0 && a.Elem < 1<<40
		}
		if !hasNext {
			return Array{}, false
		}
		off = next
	}
	return Array{}, false
}

// fortran reports whether the unit that holds off is in a language whose arrays
// begin at 1 and have their fastest dimension first.
func (d *debugInfo) fortran(off dwarf.Offset) bool {
	// DW_LANG_Fortran77, 90, 95, 03, 08 and 18.
	languages := []int64{0x07, 0x08, 0x0e, 0x22, 0x23, 0x2d}
	u := d.unitOf(off)
	if u == nil {
		return false
	}
	language, _ := u.root.Val(dwarf.AttrLanguage).(int64)
	return slices.Contains(languages, language)
}

// dims reads the dimensions of the array type that r has just read.
func (d *debugInfo) dims(r *dwarf.Reader, fortran bool) []int64 {
	var dims []int64
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == 0 {
			break
		}
		if e.Tag != dwarf.TagSubrangeType {
			continue
		}
		lower, known := e.Val(dwarf.AttrLowerBound).(int64)
		if e.Val(dwarf.AttrLowerBound) == nil {
			known = true
			if fortran {
				lower = 1
			}
		}
		count, counted := e.Val(dwarf.AttrCount).(int64)
		upper, bounded := e.Val(dwarf.AttrUpperBound).(int64)
		switch {
		case counted:
		case known && bounded:
			count = upper - lower + 1
		}
		dims = append(dims, max(0, count))
	}
	if fortran {
		slices.Reverse(dims)
	}
	return dims
}

// onlyMember returns the type of the only member of the structure that r has just
// read, if it is an array.
func (d *debugInfo) onlyMember(r *dwarf.Reader) (dwarf.Offset, bool) {
	var member dwarf.Offset
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == 0 {
			break
		}
		if e.Tag == dwarf.TagMember && e.Val(dwarf.AttrExternal) == nil {
			if off, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok && member == 0 {
				member = off
			} else {
				return 0, false
			}
		}
		if e.Children {
			r.SkipChildren()
		}
	}
	if member == 0 {
		return 0, false
	}
	for off := member; ; {
		r.Seek(off)
		e, err := r.Next()
		if err != nil || e == nil {
			return 0, false
		}
		if e.Tag == dwarf.TagArrayType {
			return member, true
		}
		next, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if !ok || e.Tag != dwarf.TagTypedef {
			return 0, false
		}
		off = next
	}
}

// Pointer returns what a variable of the function whose code holds vaddr points to,
// or failing that a global of the same unit: the one called name, or, without a
// name, the only one that is declared at line.
func (m *Module) Pointer(vaddr uint64, name string, line int) (Array, bool) {
	m.mu.Lock()
	d := m.load()
	u := d.unitAt(vaddr)
	var v *detail
	if u != nil {
		var err error
		func() {
			defer guard(&err, m.path)
			v = d.variableNear(u, vaddr, name, line)
		}()
	}
	m.mu.Unlock()
	if v == nil {
		return Array{}, false
	}
	a, ok := m.array(v.kind)
	a.Variable = v.name
	return a, ok
}

// variableNear finds the variable of Pointer, nil if there is none.
func (d *debugInfo) variableNear(u *unit, pc uint64, name string, line int) *detail {
	r := d.data.Reader()
	r.Seek(u.off)
	var local, global []*detail
	var inside []bool // is the entry at each depth in the function of pc?
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Offset >= u.end {
			break
		}
		if e.Tag == 0 {
			if len(inside) == 0 {
				break
			}
			inside = inside[:len(inside)-1]
			continue
		}
		in := len(inside) > 0 && inside[len(inside)-1]
		switch e.Tag {
		case dwarf.TagSubprogram:
			ranges, _ := d.data.Ranges(e)
			in = contains(ranges, pc)
			if !in && e.Children {
				r.SkipChildren()
				continue
			}
		case dwarf.TagVariable, dwarf.TagFormalParameter:
			if v := d.variable(u, e); v.name != "" && (v.name == name || name == "" && v.line == line) {
				if in {
					local = append(local, v)
				} else {
					global = append(global, v)
				}
			}
		}
		if e.Children {
			inside = append(inside, in)
		}
	}
	for _, found := range [][]*detail{local, global} {
		if len(found) == 1 || len(found) > 0 && name != "" {
			return found[0]
		}
	}
	return nil
}
