package symbol

import (
	"debug/elf"
	"slices"
	"sort"
	"strings"
)

// Function is an address range of code [Lo, Hi) and its ELF symbol.
type Function struct {
	Symbol string // not demangled
	Lo, Hi uint64
}

// object is a data symbol.
type object struct {
	symbol string
	lo     uint64
	size   uint64
	bind   elf.SymBind
	tls    bool
}

// elfSymbol is a symbol with the file that its STT_FILE names, if it is local.
type elfSymbol struct {
	elf.Symbol
	file string
}

// readSymbols returns the symbols of .symtab and .dynsym; a broken table counts
// as none.
func readSymbols(e *elf.File) []elfSymbol {
	var out []elfSymbol
	file := ""
	static, _ := e.Symbols()
	for _, s := range static {
		if elf.ST_TYPE(s.Info) == elf.STT_FILE {
			file = s.Name
			continue
		}
		if elf.ST_BIND(s.Info) != elf.STB_LOCAL {
			file = ""
		}
		out = append(out, elfSymbol{s, file})
	}
	dynamic, _ := e.DynamicSymbols()
	for _, s := range dynamic {
		out = append(out, elfSymbol{s, ""})
	}
	return out
}

// Functions returns the functions by ascending address; of several symbols for
// one address the global one.
func (m *Module) Functions() []Function { return m.functions }

// FunctionAt returns the function that covers vaddr.
func (m *Module) FunctionAt(vaddr uint64) (Function, bool) {
	i := sort.Search(len(m.functions), func(i int) bool { return m.functions[i].Lo > vaddr })
	for n := 0; i > 0 && n < 4; n++ {
		i--
		if vaddr < m.functions[i].Hi {
			return m.functions[i], true
		}
	}
	return Function{}, false
}

// FunctionsNamed returns the functions one of whose symbols, be it an alias, is symbol,
// and those with an entry of that name inside.
func (m *Module) FunctionsNamed(symbol string) []Function {
	var out []Function
	for _, at := range m.named[symbol] {
		if f, ok := m.FunctionAt(at); ok && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// functions returns the functions among symbols, and the addresses that each name has.
// A symbol without a size, as hand-written assembly has, reaches to the next symbol or
// its section's end.
func functions(symbols []elfSymbol, sections []section) ([]Function, map[string][]uint64) {
	var all []elfSymbol
	for _, s := range symbols {
		kind := elf.ST_TYPE(s.Info)
		isCode := kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC
		if !isCode && kind == elf.STT_NOTYPE && s.Name != "" && !strings.HasPrefix(s.Name, ".L") {
			sec := sectionAt(sections, s.Value)
			isCode = sec != nil && sec.flags&elf.SHF_EXECINSTR != 0
		}
		if isCode && s.Section != elf.SHN_UNDEF && s.Value != 0 {
			all = append(all, s)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return before(all[i], all[j]) })
	var out []Function
	named := make(map[string][]uint64)
	for i, s := range all {
		name, _, _ := strings.Cut(s.Name, "@") // the version, in .symtab
		named[name] = append(named[name], s.Value)
		if len(out) > 0 && out[len(out)-1].Lo == s.Value {
			continue
		}
		hi := s.Value + s.Size
		if s.Size == 0 || hi < s.Value {
			hi = openEnd(all[i:], s.Value, sections)
		}
		out = append(out, Function{Symbol: s.Name, Lo: s.Value, Hi: hi})
	}
	return out, named
}

// openEnd returns where the function at lo ends that has no size: at the next
// symbol or the end of its section.
func openEnd(rest []elfSymbol, lo uint64, sections []section) uint64 {
	hi := lo + 1
	if sec := sectionAt(sections, lo); sec != nil {
		hi = sec.hi
	}
	for _, s := range rest {
		if s.Value > lo {
			return min(hi, s.Value)
		}
	}
	return hi
}

// before orders symbols by address, then by how well they name it.
func before(a, b elfSymbol) bool {
	if a.Value != b.Value {
		return a.Value < b.Value
	}
	if (a.Size > 0) != (b.Size > 0) {
		return a.Size > 0
	}
	if ra, rb := bindRank(a), bindRank(b); ra != rb {
		return ra < rb
	}
	if ua, ub := underscores(a.Name), underscores(b.Name); ua != ub {
		return ua < ub
	}
	return a.Name < b.Name
}

// bindRank orders global before weak before local symbols.
func bindRank(s elfSymbol) int {
	switch elf.ST_BIND(s.Info) {
	case elf.STB_GLOBAL:
		return 0
	case elf.STB_LOCAL:
		return 2
	}
	return 1
}

// underscores counts the leading underscores of a name.
func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }

// objects returns the data symbols by ascending address, of several for one
// address the largest and best named, and the file of each local one.
func objects(symbols []elfSymbol, sections []section) ([]object, map[string]string) {
	var all []elfSymbol
	for _, s := range symbols {
		kind := elf.ST_TYPE(s.Info)
		if (kind == elf.STT_OBJECT || kind == elf.STT_COMMON || kind == elf.STT_TLS) &&
			s.Section != elf.SHN_UNDEF && s.Size > 0 && s.Value+s.Size > s.Value {
			all = append(all, s)
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if a.Value == b.Value && a.Size != b.Size {
			return a.Size > b.Size
		}
		return before(a, b)
	})
	var out []object
	files := make(map[string]string)
	seen := make(map[uint64]bool)
	for _, s := range all {
		tls := elf.ST_TYPE(s.Info) == elf.STT_TLS
		key := s.Value<<1 | boolBit(tls)
		if seen[key] {
			continue
		}
		seen[key] = true
		out = append(out, object{symbol: s.Name, lo: s.Value, size: s.Size, bind: elf.ST_BIND(s.Info), tls: tls})
		if s.file != "" {
			files[fileKey(s.Name, s.Value)] = s.file
		}
	}
	return out, files
}

// boolBit is 1 for true.
func boolBit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
