package bounds

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// plainLibraries are those whose functions, but for identities, do for one thread
// what they do for another.
var plainLibraries = []string{
	"linux-vdso", "ld-linux-x86-64", "libc", "libm", "libmvec", "libpthread", "libdl", "librt", "libgcc_s", "libatomic",
	"libgfortran", "libquadmath", "libgomp", "libomp", "libomp5", "libiomp5", "libstdc++", "libc++", "libc++abi",
	"libFortranRuntime", "libFortranDecimal", "libflang_rt.runtime", "libimf", "libsvml", "libirng", "libintlc",
}

// callers are functions of theirs that call what they are given a pointer to.
var callers = []string{"qsort", "qsort_r", "bsearch", "lfind", "lsearch", "tsearch", "tfind", "tdelete", "twalk", "pthread_once", "call_once"}

// allocators are the functions that jemalloc, tcmalloc and their like put in the place
// of libc's and, with allocatorPrefixes, of libstdc++'s: operators new and delete.
var (
	allocators = []string{"malloc", "calloc", "realloc", "reallocarray", "free", "cfree", "posix_memalign", "aligned_alloc", "memalign",
		"valloc", "pvalloc", "malloc_usable_size"}
	allocatorPrefixes = []string{"_Znw", "_Zna", "_Zdl", "_Zda"}
)

func allocates(name string) bool {
	return slices.Contains(allocators, name) ||
		slices.ContainsFunc(allocatorPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func isPlain(library string) bool {
	stem, _, _ := strings.Cut(filepath.Base(library), ".so")
	return slices.Contains(plainLibraries, stem)
}

// imported is the functions that a file takes from others.
type imported struct {
	from     map[string]string // function → library that the symbol's version names; "" has none
	strange  []string          // libraries it is linked to that are not plain
	embedded bool              // a library: a function without a version may also be of the program
}

func importedBy(e *elf.File) imported {
	im := imported{from: map[string]string{}, embedded: !slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })}
	symbols, _ := e.DynamicSymbols()
	for _, s := range symbols {
		if kind := elf.ST_TYPE(s.Info); s.Section == elf.SHN_UNDEF && kind != elf.STT_OBJECT && kind != elf.STT_TLS {
			im.from[s.Name] = s.Library
		}
	}
	libraries, _ := e.ImportedLibraries()
	for _, l := range libraries {
		if !isPlain(l) {
			im.strange = append(im.strange, filepath.Base(l))
		}
	}
	return im
}

// unread says why nobody knows what a function called through the linkage table does;
// empty if it is read, or does for every thread the same.
func (b *Binary) unread(name string) string {
	for _, o := range b.offering(name) {
		if o.resolved[name] || len(o.module.FunctionsNamed(name)) == 0 {
			return notLookedInto(name, filepath.Base(o.module.Path()))
		}
	}
	library, ok := b.imports.from[name]
	_, common := pointerArgs[name]
	switch {
	case !ok || library == "" && (common || runtimeFunction(name) && len(b.imports.strange) == 0):
		return ""
	case library != "" && isPlain(library), len(b.elsewhere(name)) > 0:
		return ""
	case library == "" && !b.imports.embedded && len(b.imports.strange) == 0:
		return ""
	case library == "":
		library = cmp.Or(strings.Join(b.imports.strange, " or "), "another file")
	}
	return notLookedInto(name, library)
}

func notLookedInto(name, file string) string {
	return fmt.Sprintf("the program calls %s of %s, which is not looked into", name, file)
}

// whyPointer is why a call is refused of which only a run tells whom it calls.
const whyPointer = "the program calls through a pointer, and what is called may depend on the thread"

// unseen says why code that step i of a function goes to is not looked at; empty
// where it is, where it does the same for every thread, and where the step stays in
// the function. takes is whether the function takes the address of another.
func (b *Binary) unseen(f *function, i int, takes bool) string {
	s := &f.steps[i]
	name := s.callee
	switch a := s.Args[0].(type) {
	case x86asm.Rel:
		_, local := b.module.FunctionAt(s.next + uint64(int64(a)))
		switch {
		case s.target != 0 || local:
			return ""
		case name == "":
			return whyPointer // a linkage table's slot that the program fills itself
		}
	default:
		if s.Op != x86asm.CALL && s.Op != x86asm.JMP {
			return b.unread(b.loaded(s)) // whose address it takes, perhaps for somebody who calls it
		}
		if name == "" {
			name = b.held(f, i)
		}
		switch {
		case name == "" && s.Op == x86asm.JMP && b.isSwitch(f, i):
			return ""
		case name == "":
			return whyPointer
		}
	}
	if slices.Contains(callers, name) && !takes {
		return whyPointer + " (" + name + ")"
	}
	return b.unread(name)
}

// held returns the function of another file whose address the register of a call
// or jump holds, as -fno-plt has it; empty is not known. The register was loaded in
// the same block, or holds nothing else in all of the function.
func (b *Binary) held(f *function, i int) string {
	r, _, ok := regOf(f.steps[i].Args[0])
	if !ok {
		return ""
	}
	switches := slices.ContainsFunc(f.steps, func(s step) bool { return s.Op == x86asm.JMP && s.target == 0 && !s.leaves })
	if j := lastWrite(f, i, r); j >= 0 && !switches { // whose cases are blocks that nobody sees begin
		return b.loads(&f.steps[j])
	}
	if slices.Contains([]int{0, 1, 2, 6, 7, 8, 9, 10, 11}, r) { // a call spoils it
		return ""
	}
	name := ""
	for j := range f.steps {
		s := &f.steps[j]
		if !writes(s, r) || s.Op == x86asm.POP {
			continue
		}
		if from := b.loads(s); from == "" || name != "" && from != name {
			return ""
		} else {
			name = from
		}
	}
	return name
}

// loads returns the function whose address a MOV takes from the global offset table.
func (b *Binary) loads(s *step) string {
	if s.Op != x86asm.MOV {
		return ""
	}
	return b.loaded(s)
}

// lastWrite returns the step before i, in its basic block, that writes register r;
// -1 is none.
func lastWrite(f *function, i, r int) int {
	for ; i > 0 && !f.leaders[i]; i-- {
		before := &f.steps[i-1]
		switch {
		case before.next != f.steps[i].pc, before.Op == x86asm.CALL, before.Op == x86asm.JMP, before.Op == x86asm.RET:
			return -1
		case writes(before, r):
			return i - 1
		}
	}
	return -1
}

// writes reports whether a step may write register r.
func writes(s *step, r int) bool {
	switch s.Op {
	case x86asm.CMP, x86asm.TEST, x86asm.PUSH, x86asm.CALL, x86asm.JMP, x86asm.NOP:
		return false
	case x86asm.MUL, x86asm.IMUL, x86asm.DIV, x86asm.IDIV, x86asm.CDQ, x86asm.CQO, x86asm.CDQE:
		if r == 0 || r == 2 {
			return true
		}
	case x86asm.LEAVE:
		return r == 5
	}
	for k, a := range s.Args {
		if reg, _, ok := regOf(a); ok && reg == r && (k == 0 || s.Op == x86asm.XCHG || s.Op == x86asm.XADD || s.vector) {
			return true
		}
	}
	return slices.Contains(implicit(s.Op.String()), r)
}

// isSwitch reports whether the jump of step i goes through a table of places in its
// own function: of their addresses, or of their distances from the table.
func (b *Binary) isSwitch(f *function, i int) bool {
	if m, ok := f.steps[i].Args[0].(x86asm.Mem); ok {
		return b.within(f, m)
	}
	r, _, ok := regOf(f.steps[i].Args[0])
	if !ok {
		return false
	}
	at := lastWrite(f, i, r)
	if at < 0 {
		return false
	}
	s := &f.steps[at]
	if m, ok := s.Args[1].(x86asm.Mem); ok && s.Op == x86asm.MOV {
		return b.within(f, m)
	}
	other, _, ok := regOf(s.Args[1])
	if s.Op != x86asm.ADD || !ok {
		return false
	}
	for _, offset := range []int{r, other} {
		j := lastWrite(f, at, offset)
		if j < 0 || f.steps[j].Op != x86asm.MOVSXD {
			continue
		}
		if m, ok := f.steps[j].Args[1].(x86asm.Mem); ok && m.Scale == 4 {
			base, _, _ := regOf(m.Base)
			return b.distances(f, j, base)
		}
	}
	return false
}

// within reports whether m is an element of a constant table of addresses within f.
func (b *Binary) within(f *function, m x86asm.Mem) bool {
	if m.Base != 0 || m.Scale != 8 {
		return false
	}
	data := b.constants.at(uint64(uint32(m.Disp)))
	return len(data) >= 8 && f.inside(binary.LittleEndian.Uint64(data))
}

// distances reports whether register r points, at step i, to a constant table of
// distances to places within f.
func (b *Binary) distances(f *function, i, r int) bool {
	for i--; i >= 0; i-- {
		s := &f.steps[i]
		if !writes(s, r) {
			continue
		}
		m, ok := s.Args[1].(x86asm.Mem)
		if s.Op != x86asm.LEA || !ok || m.Base != x86asm.RIP {
			return false
		}
		table := s.next + uint64(int64(int32(m.Disp)))
		data := b.constants.at(table)
		return len(data) >= 4 && f.inside(table+uint64(int64(int32(binary.LittleEndian.Uint32(data)))))
	}
	return false
}

// inside reports whether an instruction of f, but its first, is at address.
func (f *function) inside(address uint64) bool {
	_, ok := f.at[address]
	return ok && address != f.Lo
}
