// Package ingest turns what a run left behind into a profile.Profile.
//
// # Input
//
// The arenas of the processes of an emulated run, the ELF files that they had
// mapped, and what is known of the run.
//
// # Output
//
// The profile of the process that made the most accesses, with everything named;
// the others are counted and said.
//
// # Method
//
// Page records of the arena become pages of objects: of the allocation, mapping
// or stack that covered them, else of the global symbol at their address, else
// of the module's image, else of the site that most small allocations of the
// page came from. Blocks of counters become rows, uses of instructions uses of lines
// (code.go), what threads did in parts of the run the intervals.
//
// # Limits
//
// Two modules that were loaded at one address one after the other cannot be told
// apart in call stacks; the later one is taken.
package ingest

import (
	"fmt"
	"strings"
	"syscall"

	"numaopt/internal/arena"
	"numaopt/internal/profile"
	"numaopt/internal/record"
	"numaopt/internal/symbol"
)

// Emulated makes the profile of an emulated run. run says what the caller knows
// of it (command, machine, model, version); the rest is filled in here.
func Emulated(raw *record.Raw, run profile.Run) (*profile.Profile, error) {
	best, others := 0, raw.OtherAccesses
	var counts []uint64
	for i, p := range raw.Arenas {
		counts = append(counts, p.Accesses())
		if counts[i] > counts[best] {
			best = i
		}
	}
	if len(raw.Arenas) == 0 {
		return nil, fmt.Errorf("the program left no counters behind (it ended before its first instruction)")
	}
	var silent []string
	for i, n := range counts {
		if i == best {
			continue
		}
		others += n
		if n > counts[best]/20 {
			silent = append(silent, withoutRuntime(raw.Arenas[i])...)
		}
	}
	a, err := raw.Arenas[best].Open()
	if err != nil {
		return nil, err
	}
	run.Source = "emulate"
	run.Start, run.Elapsed = raw.Start, raw.Elapsed
	run.Processes, run.OtherAccesses = raw.Processes, others
	run.Complete = a.Flags&(arena.Exited|arena.Execed) != 0
	run.ExitStatus = raw.Status
	p, err := FromCounts(a, run, new(symbol.Table))
	if err != nil {
		return nil, err
	}
	p.Warnings = append(append(runWarnings(raw, a, counts[best], others), silent...), p.Warnings...)
	return p, nil
}

// withoutRuntime warns of a process that numaopt's runtime did not come up in.
func withoutRuntime(p *record.Process) []string {
	a, err := p.Open()
	if err != nil || a.Flags&(arena.Hello|arena.Execed) != 0 {
		return nil
	}
	_, program, err := a.Command()
	if err != nil {
		return nil
	}
	return []string{fmt.Sprintf("numaopt's runtime did not come up in %s, another of the processes (is it statically linked?)", program)}
}

// runWarnings says what the reader should know of how the run went.
func runWarnings(raw *record.Raw, a *arena.Arena, mine, others uint64) []string {
	var out []string
	argv, program, err := a.Command()
	if err != nil || len(argv) == 0 {
		argv = []string{"?"}
	}
	if others > 0 && raw.Processes > 1 {
		out = append(out, fmt.Sprintf("%d processes ran; this is %q (%s) with %.1f%% of all accesses, the others are not shown",
			raw.Processes, strings.Join(argv, " "), program, 100*float64(mine)/float64(mine+others)))
	}
	ended := a.Flags&(arena.Exited|arena.Execed) != 0 // became another program: that was its end
	switch {
	case raw.Signal == syscall.SIGILL:
		out = append(out, "the program ended with SIGILL: it may be an instruction that this QEMU cannot emulate (AVX-512, for one). If the program runs by itself, rebuild it for x86-64-v3 or lower, or for libraries that choose at run time set GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F")
	case raw.Signal == syscall.SIGSEGV || raw.Signal == syscall.SIGBUS:
		out = append(out, fmt.Sprintf("the program was ended by signal %d (%v); the profile is what it did up to there. If the program runs by itself, the emulator is at fault: QEMU reads 16 bytes for vector conversions that read 8, which fails at the end of a mapping. Rebuild without them (-fno-tree-vectorize; clang: -fno-vectorize -fno-slp-vectorize)", raw.Status-128, raw.Signal))
	case raw.Signal != nil:
		out = append(out, fmt.Sprintf("the program was ended by signal %d (%v); the profile is what it did up to there", raw.Status-128, raw.Signal))
	case !ended:
		out = append(out, "the process did not come to its end; the profile is what it did up to there")
	}
	if a.Flags&arena.Hello == 0 {
		out = append(out, fmt.Sprintf("numaopt's runtime did not come up in %s (is it statically linked?): heap objects and loops are not known", program))
	}
	if a.Flags&arena.Full != 0 {
		out = append(out, "the counters' memory was full; later pages are not counted")
	}
	if mine > 0 && float64(a.Lost) > 0.001*float64(mine) {
		out = append(out, fmt.Sprintf("%d accesses (%.1f%%) were not counted: of threads before they had a rank, or beyond the counters' room", a.Lost, 100*float64(a.Lost)/float64(mine)))
	}
	return out
}
