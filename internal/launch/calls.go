package launch

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/bounds"
	"numaopt/internal/plan"
)

// calls is the calls of an OpenMP library that fetch the bounds of worksharing
// loops, as machine code has them.
type calls struct {
	returns []uint64 // return addresses, ascending
	defined string   // a function of the library that the file has in itself
}

// boundsFunctions are the functions that loops fetch their bounds by.
var boundsFunctions = map[string][]string{
	"libomp":  {"__kmpc_for_static_init_4", "__kmpc_for_static_init_4u", "__kmpc_for_static_init_8", "__kmpc_for_static_init_8u"},
	"libgomp": append([]string{"omp_get_thread_num"}, gompStarts("runtime", "nonmonotonic_runtime", "maybe_nonmonotonic_runtime")...),
}

// dispatchFunctions are those that begin a loop which hands out its work as it goes.
var dispatchFunctions = map[string][]string{
	"libomp":  {"__kmpc_dispatch_init_4", "__kmpc_dispatch_init_4u", "__kmpc_dispatch_init_8", "__kmpc_dispatch_init_8u"},
	"libgomp": gompStarts("dynamic", "guided", "runtime", "nonmonotonic_dynamic", "nonmonotonic_guided", "nonmonotonic_runtime", "maybe_nonmonotonic_runtime"),
}

// gompStarts are the functions of libgomp that begin loops of these kinds.
func gompStarts(kinds ...string) (names []string) {
	for _, kind := range kinds {
		names = append(names, "GOMP_loop_"+kind+"_start", "GOMP_loop_ull_"+kind+"_start", "GOMP_parallel_loop_"+kind)
	}
	return names
}

// functionsOf are the functions by which a loop fetches its bounds.
func functionsOf(l *plan.Loop) []string {
	if l.Schedule == plan.Affine {
		return dispatchFunctions[l.Runtime]
	}
	return boundsFunctions[l.Runtime]
}

// callsOf finds the calls of names in the executable sections of the file at path:
// through a procedure linkage table (call rel32), or through the global offset
// table (call [rip+disp32], as gcc -fno-plt makes). It looks at every byte, not
// only where instructions begin: that four bytes within another instruction make
// the distance to just these places is out of the question in practice, and the
// callers want a line of the source to fit as well.
func callsOf(path string, names []string) (c calls, err error) {
	defer func() {
		if p := recover(); p != nil { // debug/elf is not made for hostile input
			err = fmt.Errorf("%s: broken ELF: %v", path, p)
		}
	}()
	f, err := elf.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	static, _ := f.Symbols()
	for _, s := range static {
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC && slices.Contains(names, s.Name) {
			c.defined = s.Name
		}
	}
	imports := bounds.Imports(f)
	slot := func(at uint64) bool { return slices.Contains(names, imports[at]) }
	stubs := make(map[uint64]bool)
	scan(f, func(s *elf.Section) bool { return strings.HasPrefix(s.Name, ".plt") }, func(at uint64, code []byte) {
		if code[0] == 0xff && code[1] == 0x25 && slot(target(at+6, code[2:])) { // jmp [rip+disp32]
			if at%8 != 0 {
				at &^= 15 // behind an endbr64, and perhaps a bnd prefix
			}
			stubs[at] = true
		}
	})
	scan(f, func(s *elf.Section) bool { return !strings.HasPrefix(s.Name, ".plt") }, func(at uint64, code []byte) {
		switch {
		case code[0] == 0xe8 && stubs[target(at+5, code[1:])]:
			c.returns = append(c.returns, at+5)
		case code[0] == 0xff && code[1] == 0x15 && slot(target(at+6, code[2:])):
			c.returns = append(c.returns, at+6)
		}
	})
	slices.Sort(c.returns)
	return c, nil
}

// target is the address that a displacement in code counts from next.
func target(next uint64, code []byte) uint64 {
	return next + uint64(int64(int32(binary.LittleEndian.Uint32(code))))
}

// scan calls see with each address of the executable sections that want says, and
// the six bytes from there on.
func scan(f *elf.File, want func(*elf.Section) bool, see func(at uint64, code []byte)) {
	const longest = 6
	for _, s := range f.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR == 0 || !want(s) {
			continue
		}
		code, err := s.Data()
		if err != nil {
			continue
		}
		for i := 0; i+longest <= len(code); i++ {
			see(s.Addr+uint64(i), code[i:i+longest])
		}
	}
}
