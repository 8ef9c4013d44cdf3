// Package launch turns a plan into a run of a program on the machine at hand:
// names become addresses, ordinals become nodes and CPUs.
package launch

import "numaopt/internal/runfile"

// Run is the run file that Resolve makes; see package runfile.
type Run = runfile.Run

// FuncOffset is the entry of a function.
type FuncOffset = runfile.FuncOffset
