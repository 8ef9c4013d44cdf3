package symbol

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
)

// VariableKind is the kind of a global.
type VariableKind string

// The kinds.
const (
	Plain   VariableKind = "global" // also static ones and those of a function
	InMod   VariableKind = "module" // of a Fortran module
	Common  VariableKind = "common" // a Fortran COMMON block
	Unnamed VariableKind = "gap"    // at least a page of data without a symbol
)

// Variable is a global of a module.
type Variable struct {
	Symbol string // of ELF, not demangled, see split for members of a COMMON block; empty for Unnamed
	// Name is what a person recognises: "u in bt.c", "work in bt.c (solve)",
	// "u in mod", "/fields/ in bt.f", "rhs in /fields/".
	Name    string
	VAddr   uint64 // for a thread-local one its offset in the template
	Size    uint64 // bytes
	File    string // as in the debug information, else a base name or empty
	Line    int    // 0 is not known
	Kind    VariableKind
	Section string // ".bss", ".data", ".tbss" …
}

// detailBytes is the least size for which DWARF is asked for a variable's file,
// line and function: smaller ones are never placed.
const detailBytes = 4096

// Variables returns the globals of writable and constant data by ascending
// address, the members of a COMMON block in its place where all its declarations
// agree on them, and the gaps of a page or more between them. Small ones have no line.
func (m *Module) Variables() []Variable {
	details := m.details()
	var out, tls []Variable
	for _, o := range m.objects {
		v := Variable{Symbol: o.symbol, VAddr: o.lo, Size: o.size, Kind: Plain, File: m.files[fileKey(o.symbol, o.lo)]}
		if o.tls {
			v.Section = ".tbss"
			v.Name = named(Demangle(o.symbol), v.File)
			tls = append(tls, v)
			continue
		}
		s := sectionAt(m.sections, o.lo)
		if s == nil || s.flags&elf.SHF_EXECINSTR != 0 {
			continue
		}
		v.Section = s.name
		v.describe(details[o.lo])
		if d := details[o.lo]; d != nil && d.common {
			if members := v.split(d); len(members) > 0 {
				out = append(out, members...)
				continue
			}
		}
		out = append(out, v)
	}
	for lo, d := range details {
		if s := sectionAt(m.sections, lo); d.size >= detailBytes && s != nil && !covered(out, lo) {
			v := Variable{Symbol: d.linkage, VAddr: lo, Size: d.size, Kind: Plain, Section: s.name}
			v.describe(d)
			out = append(out, v)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].VAddr < out[j].VAddr })
	out = append(out, m.gaps(out)...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].VAddr < out[j].VAddr })
	return append(out, tls...)
}

// covered reports whether a variable of vars (ascending, but for the last few)
// holds vaddr.
func covered(vars []Variable, vaddr uint64) bool {
	for _, v := range vars {
		if v.VAddr <= vaddr && vaddr < v.VAddr+v.Size {
			return true
		}
	}
	return false
}

// gaps returns the unnamed stretches of a page or more of writable sections.
func (m *Module) gaps(vars []Variable) []Variable {
	var out []Variable
	for _, s := range m.sections {
		if s.flags&elf.SHF_WRITE == 0 || s.flags&elf.SHF_TLS != 0 {
			continue
		}
		at := s.lo
		add := func(hi uint64) {
			if hi > at && hi-at >= detailBytes {
				out = append(out, Variable{
					Name:  fmt.Sprintf("%s+%#x in %s", s.name, at-s.lo, filepath.Base(m.path)),
					VAddr: at, Size: hi - at, Kind: Unnamed, Section: s.name,
				})
			}
		}
		for _, v := range vars {
			if v.VAddr+v.Size <= s.lo || v.VAddr >= s.hi {
				continue
			}
			add(v.VAddr)
			at = max(at, v.VAddr+v.Size)
		}
		add(s.hi)
	}
	return out
}

// detail is what DWARF says of the variable at an address.
type detail struct {
	name, linkage string
	file          string
	line          int
	prefix        string // namespaces and classes, "ns::Class::"
	module        string // Fortran module
	function      string // that it is local to
	common        bool
	members       []*detail    // of a common block
	kind          dwarf.Offset // of its type
	size          uint64       // only where no symbol has it, and of members
	lo            uint64       // of a member; 0 is not known
}

// describe names v by its symbol and what DWARF says of it, if anything.
func (v *Variable) describe(d *detail) {
	if d == nil {
		v.describeBySymbol()
		return
	}
	v.File, v.Line = d.file, d.line
	switch {
	case d.common:
		v.Kind = Common
		v.Name = named("/"+d.name+"/", d.file)
	case strings.HasPrefix(d.linkage, "_Z"):
		v.Name = named(Demangle(d.linkage), d.file)
	case d.module != "":
		v.Kind = InMod
		v.Name = d.name + " in " + d.module
	default:
		v.Name = named(d.prefix+d.name, d.file)
	}
	if d.function != "" && !d.common {
		v.Name += " (" + d.function + ")"
	}
}

// describeBySymbol names v where there is no debug information.
func (v *Variable) describeBySymbol() {
	name := Demangle(v.Symbol)
	if m := fortranModule.FindStringSubmatch(v.Symbol); m != nil {
		v.Kind = InMod
		v.Name = m[2] + " in " + m[1]
		return
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 && allDigits(name[i+1:]) {
		name = name[:i] // static of a function in C: work.0
	}
	v.Name = named(name, v.File)
}

// named joins a name and the base name of a file.
func named(name, file string) string {
	if file == "" {
		return name
	}
	return name + " in " + filepath.Base(file)
}

// allDigits reports whether s is a decimal number.
func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// fileKey is the key of Module.files.
func fileKey(symbol string, vaddr uint64) string { return fmt.Sprintf("%s@%x", symbol, vaddr) }

// details returns what DWARF says of variables, by address. Units are read until
// each symbol of detailBytes is found.
func (m *Module) details() map[uint64]*detail {
	missing := make(map[uint64]bool)
	symbols := make(map[string]uint64)
	for _, o := range m.objects {
		if o.bind != elf.STB_LOCAL {
			symbols[o.symbol] = o.lo
		}
		if s := sectionAt(m.sections, o.lo); !o.tls && o.size >= detailBytes && s != nil {
			missing[o.lo] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[uint64]*detail)
	d := m.load()
	if d.data == nil {
		return out
	}
	stripped := len(m.functions) == 0
	commons := make(map[uint64][]*detail)
	for _, u := range d.units {
		if len(missing) == 0 && !stripped && !(len(commons) > 0 && d.fortran(u.off)) {
			continue
		}
		var err error
		func() {
			defer guard(&err, m.path)
			d.variables(u, symbols, func(lo uint64, v *detail) {
				if old := out[lo]; old == nil || old.file == "" || old.common && !v.common {
					out[lo] = v
				}
				delete(missing, lo)
				if v.common {
					commons[lo] = append(commons[lo], v)
				}
			})
		}()
	}
	for lo, list := range commons {
		out[lo].members = d.agreed(list)
	}
	m.sizes(out)
	return out
}

// sizes sets the size of the variables that no symbol covers. m.mu is held.
func (m *Module) sizes(details map[uint64]*detail) {
	var err error
	defer guard(&err, m.path)
	for lo, v := range details {
		i := sort.Search(len(m.objects), func(i int) bool { return m.objects[i].lo > lo })
		if v.kind == 0 || i > 0 && lo < m.objects[i-1].lo+m.objects[i-1].size {
			continue
		}
		if t, err := m.debug.data.Type(v.kind); err == nil && t.Size() > 0 {
			v.size = uint64(t.Size())
		}
	}
}

// variables calls found for each variable of a unit that has an address, or
// whose symbol has.
func (d *debugInfo) variables(u *unit, symbols map[string]uint64, found func(uint64, *detail)) {
	d.parse(u)
	type place struct {
		prefix, module, function string
		common                   *detail
	}
	r := d.data.Reader()
	r.Seek(u.off)
	var stack []place
	var at place
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Offset >= u.end {
			return
		}
		if e.Tag == 0 {
			if len(stack) == 0 {
				return
			}
			at, stack = stack[len(stack)-1], stack[:len(stack)-1]
			continue
		}
		next, enter := at, true
		name, _ := e.Val(dwarf.AttrName).(string)
		switch e.Tag {
		case dwarf.TagCompileUnit, dwarf.TagPartialUnit, dwarf.TagLexDwarfBlock:
		case dwarf.TagNamespace, dwarf.TagStructType, dwarf.TagClassType:
			next.prefix += scopeName(e)
		case dwarf.TagModule:
			next.module = name
		case dwarf.TagSubprogram:
			if fn := u.subprograms[e.Offset]; fn != nil {
				next.function, _, _ = d.describe(u, fn)
			}
			next.prefix = ""
		case dwarf.TagCommonDwarfBlock:
			lo, ok := d.address(u, e)
			if !ok { // gfortran locates the members alone
				lo, ok = symbols[d.linkage(e)]
			}
			next.common = &detail{name: name, linkage: d.linkage(e), file: u.file(intVal(e, dwarf.AttrDeclFile, -1)),
				line: intVal(e, dwarf.AttrDeclLine, 0), common: true}
			if ok {
				found(lo, next.common)
			}
		case dwarf.TagVariable:
			enter = false
			if at.common != nil {
				v := d.variable(u, e)
				v.lo, _ = d.address(u, e)
				at.common.members = append(at.common.members, v)
			} else if lo, ok := d.address(u, e); ok {
				v := d.variable(u, e)
				v.prefix, v.module, v.function = at.prefix, at.module, at.function
				found(lo, v)
			}
		default:
			enter = false
		}
		if !e.Children {
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

// linkage returns the linkage name of e.
func (d *debugInfo) linkage(e *dwarf.Entry) string {
	s, _ := e.Val(dwarf.AttrLinkageName).(string)
	return s
}

// variable reads the attributes of a DW_TAG_variable, and of the declaration
// that it completes.
func (d *debugInfo) variable(u *unit, e *dwarf.Entry) *detail {
	v := &detail{}
	for n := 0; e != nil && n < 4; n++ {
		if v.name == "" {
			v.name, _ = e.Val(dwarf.AttrName).(string)
		}
		if v.linkage == "" {
			v.linkage = d.linkage(e)
		}
		if v.line == 0 {
			v.line = intVal(e, dwarf.AttrDeclLine, 0)
			v.file = u.file(intVal(e, dwarf.AttrDeclFile, -1))
		}
		if off, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok && v.kind == 0 {
			v.kind = off
		}
		off, ok := e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		if !ok {
			off, ok = e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		}
		if !ok {
			break
		}
		r := d.data.Reader()
		r.Seek(off)
		next, err := r.Next()
		if err != nil {
			break
		}
		e = next
	}
	if v.linkage == "" {
		v.linkage = v.name
	}
	return v
}

// address returns the fixed address of a variable: DW_OP_addr, or DW_OP_addrx of
// DWARF 5. A thread-local one has none.
func (d *debugInfo) address(u *unit, e *dwarf.Entry) (uint64, bool) {
	const opAddr, opAddrx, opPlus = 0x03, 0xa1, 0x23
	loc, _ := e.Val(dwarf.AttrLocation).([]byte)
	if len(loc) < 2 {
		return 0, false
	}
	var addr uint64
	var rest []byte
	switch {
	case loc[0] == opAddr && len(loc) >= 9:
		addr, rest = binary.LittleEndian.Uint64(loc[1:]), loc[9:]
	case loc[0] == opAddrx:
		i, n := binary.Uvarint(loc[1:])
		base, ok := u.root.Val(dwarf.AttrAddrBase).(int64)
		if n <= 0 || !ok || base < 0 || i > uint64(len(d.addrs)) {
			return 0, false
		}
		lo := uint64(base) + 8*i
		if lo+8 > uint64(len(d.addrs)) {
			return 0, false
		}
		addr, rest = binary.LittleEndian.Uint64(d.addrs[lo:]), loc[1+n:]
	default:
		return 0, false
	}
	if len(rest) == 0 {
		return addr, true
	}
	if off, k := binary.Uvarint(rest[1:]); rest[0] == opPlus && k == len(rest)-1 {
		return addr + off, true
	}
	return 0, false
}

// Objects returns the variables of one symbol without asking DWARF.
func (m *Module) Objects(symbol string) []Variable {
	var out []Variable
	for _, o := range m.objects {
		if o.symbol != symbol || o.tls {
			continue
		}
		if s := sectionAt(m.sections, o.lo); s != nil {
			v := Variable{Symbol: symbol, VAddr: o.lo, Size: o.size, Kind: Plain, Section: s.name, File: m.files[fileKey(symbol, o.lo)]}
			v.describeBySymbol()
			out = append(out, v)
		}
	}
	return out
}
