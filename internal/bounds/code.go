package bounds

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"numaopt/internal/symbol"
)

const (
	threadNum  = "omp_get_thread_num"
	numThreads = "omp_get_num_threads"
)

// image is the code of a file, and which function each slot of its global
// offset table is filled with.
type image struct {
	text      sections
	constants sections // that the program cannot write
	got       map[uint64]string
	imports   imported
	offers    map[string]bool // functions that other files may call
	resolved  map[string]bool // of these, those that code chooses when the file is loaded
	shared    map[string]bool // these, and those that it takes from others
}

// sections is the contents of sections.
type sections []text

// text is the contents of a section.
type text struct {
	lo    uint64
	bytes []byte
}

// Open reads the code of the module's file. It fails where the file cannot be
// read or is not for x86-64.
func Open(m *symbol.Module) (*Binary, error) {
	e, err := elf.Open(m.Path())
	if err != nil {
		return nil, err
	}
	defer e.Close()
	if e.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("%s: code for %v cannot be judged, only for x86-64", m.Path(), e.Machine)
	}
	code, err := imageOf(e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path(), err)
	}
	b := &Binary{module: m, image: code, bodies: map[uint64]*body{}, bounds: map[uint64]bool{}}
	b.fortran = closed(e) && !b.imports.embedded && len(b.imports.strange) == 0
	return b, nil
}

// Among says which files are loaded with b: the program and its libraries, but for those
// of the compilers and the system. What b calls in them is read there; each Binary of
// them should know the same files. pre: b has judged nothing yet, or with the same files.
func (b *Binary) Among(others []*Binary) { b.others = others }

// IsPlain reports whether the file at path is a library of the compilers or the system,
// whose functions do for one thread what they do for another.
func IsPlain(path string) bool { return isPlain(path) }

// PlainLibraries returns the names of these: libm stands for libm.so, libm.so.6 and so on.
func PlainLibraries() []string { return slices.Clone(plainLibraries) }

func imageOf(e *elf.File) (image, error) {
	c := image{got: importsOf(e), imports: importedBy(e), offers: map[string]bool{}, resolved: map[string]bool{}, shared: map[string]bool{}}
	symbols, _ := e.DynamicSymbols()
	for _, s := range symbols {
		c.shared[s.Name] = true
		kind := elf.ST_TYPE(s.Info)
		if s.Section != elf.SHN_UNDEF && kind != elf.STT_OBJECT && kind != elf.STT_COMMON && kind != elf.STT_TLS {
			c.offers[s.Name] = true
			c.resolved[s.Name] = c.resolved[s.Name] || kind == elf.STT_GNU_IFUNC
		}
	}
	for _, s := range e.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&(elf.SHF_ALLOC|elf.SHF_WRITE) != elf.SHF_ALLOC {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return c, fmt.Errorf("section %s: %w", s.Name, err)
		}
		if s.Flags&elf.SHF_EXECINSTR != 0 {
			c.text = append(c.text, text{s.Addr, data})
		} else {
			c.constants = append(c.constants, text{s.Addr, data})
		}
	}
	return c, nil
}

// closed reports whether no derived type of Fortran has an assignment, a finalizer or
// I/O of its own, which flang's runtime would call: their tables are called
// _QMmoduleE.s.type (flang/docs/RuntimeTypeInfo.md).
func closed(e *elf.File) bool {
	symbols, err := e.Symbols()
	return err == nil && !slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
		return strings.HasPrefix(s.Name, "_Q") && strings.Contains(s.Name, "E.s.")
	})
}

// CallsOf returns the return addresses, ascending, of the calls of functions of these
// names that e takes from other files: through a procedure linkage table (call rel32),
// or through the global offset table (call [rip+disp32], as gcc -fno-plt makes). It
// looks at every byte, not only where instructions begin: that four bytes within
// another instruction make the distance to just these places is out of the question in
// practice, and the callers want a line of the source to fit as well.
func CallsOf(e *elf.File, names []string) (returns []uint64, err error) {
	c, err := imageOf(e)
	if err != nil {
		return nil, err
	}
	for _, t := range c.text {
		for i := 0; i+5 <= len(t.bytes); i++ {
			next, name := t.lo+uint64(i), ""
			switch code := t.bytes[i:]; {
			case code[0] == 0xe8:
				next += 5
				name = c.stub(displaced(next, code[1:]))
			case code[0] == 0xff && code[1] == 0x15 && len(code) >= 6:
				next += 6
				name = c.got[displaced(next, code[2:])]
			}
			if name != "" && slices.Contains(names, name) {
				returns = append(returns, next)
			}
		}
	}
	slices.Sort(returns)
	return returns, nil
}

// displaced is the address that a displacement in code counts from next.
func displaced(next uint64, code []byte) uint64 {
	return next + uint64(int64(int32(binary.LittleEndian.Uint32(code))))
}

// importsOf returns the names of the functions and variables whose addresses the
// dynamic linker writes into the global offset table, by the virtual address of the
// place, as the relocations say; empty where there are none. Pointers that the
// program itself may write are not among them.
func importsOf(e *elf.File) map[uint64]string {
	got := make(map[uint64]string)
	symbols, _ := e.DynamicSymbols()
	for _, s := range e.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		data, _ := s.Data()
		for ; len(data) >= 24; data = data[24:] { // r_offset, r_info, r_addend
			info := binary.LittleEndian.Uint64(data[8:])
			kind := elf.R_X86_64(uint32(info))
			if i := info >> 32; (kind == elf.R_X86_64_GLOB_DAT || kind == elf.R_X86_64_JMP_SLOT) && i > 0 && i <= uint64(len(symbols)) {
				got[binary.LittleEndian.Uint64(data)] = symbols[i-1].Name
			}
		}
	}
	return got
}

// at returns the contents from vaddr to the end of its section.
func (all sections) at(vaddr uint64) []byte {
	for _, t := range all {
		if vaddr >= t.lo && vaddr-t.lo < uint64(len(t.bytes)) {
			return t.bytes[vaddr-t.lo:]
		}
	}
	return nil
}

// name returns the name of the function at target, seen through the procedure
// linkage table; empty is not known.
func (b *Binary) name(target uint64) string {
	if f, ok := b.module.FunctionAt(target); ok && f.Lo == target {
		return f.Symbol
	}
	return b.stub(target)
}

// stub returns the function of another file that the code at target, of the procedure
// linkage table, jumps to; empty is not known.
func (b *image) stub(target uint64) string {
	code := b.text.at(target)
	for pc, n := target, 0; n < 2 && len(code) > 0; n++ {
		in, _, err := decode(code)
		if err != nil {
			break
		}
		if m, ok := in.Args[0].(x86asm.Mem); ok && in.Op == x86asm.JMP && m.Base == x86asm.RIP {
			return b.got[pc+uint64(in.Len)+uint64(m.Disp)]
		}
		if in.Op != x86asm.NOP { // endbr64
			break
		}
		pc, code = pc+uint64(in.Len), code[in.Len:]
	}
	return ""
}

// decode decodes the first instruction of code. endbr64, which x86asm does not
// know, is a NOP; vague is as in decodeVector.
func decode(code []byte) (in x86asm.Inst, vague bool, err error) {
	if len(code) >= 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa {
		return x86asm.Inst{Op: x86asm.NOP, Len: 4}, false, nil
	}
	if isVector(code) {
		return decodeVector(code)
	}
	in, err = x86asm.Decode(code, 64)
	if err == nil && in.Op == 0 {
		err = x86asm.ErrUnrecognized
	}
	return in, false, err
}

// step is one instruction.
type step struct {
	x86asm.Inst
	vector   bool // Op stands for another
	vague    bool // the offset of the memory operand is a lower bound
	pc, next uint64
	callee   string // of a CALL or of a JMP out of the function; may be empty
	target   uint64 // of a direct JMP or Jcc within the function, else 0
	leaves   bool   // a jump out of the function
}

// function is the decoded code of a function, its cold part included.
type function struct {
	symbol.Function
	steps   []step         // by address within each part
	at      map[uint64]int // address → index in steps
	leaders map[int]bool   // steps that are jumped to
}

// decode decodes a function and the part of it that gcc has put among the cold
// code. Any instruction that is not known is an error, for nobody can say then
// what the next one is.
func (b *Binary) decode(fn symbol.Function) (*function, error) {
	f := &function{Function: fn, at: map[uint64]int{}, leaders: map[int]bool{}}
	parts := append([]symbol.Function{fn}, b.module.FunctionsNamed(fn.Symbol+".cold")...)
	for _, p := range parts {
		for pc := p.Lo; pc < p.Hi; {
			in, vague, err := decode(b.text.at(pc))
			if err != nil {
				return nil, fmt.Errorf("the instruction%s is not understood: %v", b.place(pc), err)
			}
			f.at[pc] = len(f.steps)
			f.steps = append(f.steps, step{Inst: in, vague: vague, vector: isVector(b.text.at(pc)), pc: pc, next: pc + uint64(in.Len)})
			pc += uint64(in.Len)
		}
	}
	for i := range f.steps {
		b.link(f, &f.steps[i])
	}
	return f, nil
}

// link finds where a step jumps or whom it calls.
func (b *Binary) link(f *function, s *step) {
	if s.Op != x86asm.CALL && s.Op != x86asm.JMP && !isJcc(s.Op) {
		return
	}
	switch a := s.Args[0].(type) {
	case x86asm.Rel:
		target := s.next + uint64(int64(a))
		if i, ok := f.at[target]; ok && s.Op != x86asm.CALL {
			s.target = target
			f.leaders[i] = true
			return
		}
		s.callee = b.name(target)
		s.leaves = s.Op != x86asm.CALL
	case x86asm.Mem:
		if a.Base == x86asm.RIP {
			s.callee = b.got[s.next+uint64(a.Disp)]
			s.leaves = s.Op == x86asm.JMP && s.callee != ""
		}
	}
}

// returnsTo returns the call that returns to site.
func (f *function) returnsTo(site uint64) (call step, ok bool) {
	for _, s := range f.steps {
		if s.next == site && s.Op == x86asm.CALL {
			return s, true
		}
	}
	return step{}, false
}

// isJcc reports whether op is a jump that depends on flags.
func isJcc(op x86asm.Op) bool {
	name := op.String()
	return name[0] == 'J' && op != x86asm.JMP && op != x86asm.JRCXZ && op != x86asm.JECXZ
}

// condition returns the condition code of a Jcc, CMOVcc or SETcc: "L", "AE".
func condition(op x86asm.Op) string {
	name := op.String()
	for _, prefix := range []string{"CMOV", "SET", "J"} {
		if strings.HasPrefix(name, prefix) {
			return name[len(prefix):]
		}
	}
	return ""
}
