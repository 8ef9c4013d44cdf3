package launch

import (
	"debug/elf"
	"fmt"
	"slices"

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

// callsOf finds the calls of names in the file at path.
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
	if c.returns, err = bounds.CallsOf(f, names); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
