package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"numaopt/internal/advice"
	"numaopt/internal/planner"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
)

// linked says of the profiled program's files which of them have an OpenMP runtime in
// themselves: their loops fetch their bounds by calls that nobody can stand between, so
// that none is known and none can be permuted.
func linked(p *profile.Profile) (notes []string) {
	for i := range p.Modules {
		m := &p.Modules[i]
		known := func(r profile.Region) bool { return r.Worksharing() && r.Site.Module == i }
		if advice.OfRuntime(m.Path) || filepath.Base(m.Path) == planner.OwnRuntime || slices.ContainsFunc(p.Regions, known) {
			continue
		}
		file, err := symbol.Open(m.Path)
		if err != nil || file.BuildID() != m.BuildID {
			continue // refusals says so of files that matter
		}
		for _, start := range []struct{ function, runtime string }{{"GOMP_parallel", "libgomp"}, {"__kmpc_fork_call", "libomp"}} {
			if len(file.FunctionsNamed(start.function)) > 0 {
				notes = append(notes, fmt.Sprintf("%[1]s has %[2]s in itself (it defines %[3]s), so its loops are not known and their schedules cannot be changed: link it with -fopenmp and without -static-openmp or a static %[2]s, and profile it again",
					filepath.Base(m.Path), start.runtime, start.function))
			}
		}
	}
	return notes
}
