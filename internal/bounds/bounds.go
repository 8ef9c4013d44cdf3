// Package bounds reads from machine code whether other threads may do the chunks of
// a static loop. Of gcc and gfortran it reads what becomes of a thread number: whether
// the result of one call of omp_get_thread_num reaches the bounds of static worksharing
// loops and nothing else. Only then may the call be answered with another thread's
// number, for then nobody can tell: thread t does the iterations of thread c, all of
// them and no others.
//
// # Input
//
// An ELF file for x86-64 and the return address of the call that fetches the bounds:
// __kmpc_for_static_init_* of clang, omp_get_thread_num of gcc. gcc takes the thread
// number for a constant of the function, so one call may serve several loops, the
// constructs master and masked, and the program's own use of the number.
//
// # Output
//
// A Verdict: permutable or not, the reason, and the loops that the call governs.
//
// # Method
//
// gcc makes of an unchunked static loop of n iterations (omp-expand.cc,
// expand_omp_for_static_nochunk)
//
//	q = n / T; r = n % T; if (t < r) { q++; r = 0; }
//	lo = t * q + r; hi = lo + q; if (lo >= hi) skip
//
// with T = omp_get_num_threads() and t = omp_get_thread_num(). The values of
// registers and stack slots are followed along all paths of the function
// (abstract interpretation, Cousot & Cousot, POPL'77). t may be copied, spilled,
// sign-extended, compared with r and multiplied by the q of the same division;
// the product is the chunk's, no longer the thread's, and may go anywhere. Any
// other use refuses. So does each instruction, call and memory access that could
// be a use and is not understood.
//
// Data that each thread has its own copy of ties a region to its threads as the
// number does. In gcc's code as in that of clang, whose runtime gives out the
// chunks, the function of the loop, the region that it belongs to and what they call,
// in this file and in those that are loaded with it (Among), are searched for accesses
// through %fs, other than to the guard of the stack, and for calls of what tells threads
// apart: __tls_get_addr, __kmpc_threadprivate_cached, pthread_self, in clang's code
// omp_get_thread_num. Each refuses, also where it does no harm. So do calls through
// pointers (virtual functions, tables of operations) and of functions that are in none
// of these files, but for those of the compilers' and the system's libraries, which do
// the same for every thread. Of several functions of one name each is read, for which
// of them is called depends on the order of loading.
//
// # Limits
//
// errno, which each thread has its own of, is not followed. Files that are not among
// those that are loaded with it are not known of: the runtime looks for these.
// A program that writes exactly this formula by hand is taken for a loop, which
// permutes it like one. Chunked loops (schedule(static, c)) and code that is not
// optimised (-O0 divides twice) are refused. That the threads carry no private data from
// one loop of a region to another is proven only where the loops are in functions of
// their own (Carries).
package bounds

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"numaopt/internal/ident"
	"numaopt/internal/symbol"
)

// Verdict is what can be said of one call of omp_get_thread_num.
type Verdict struct {
	// Permutable says that the result reaches the bounds of Loops alone.
	Permutable bool
	// Reason says in plain English why not; for a permutable call that serves
	// several loops, that they are permuted together; else empty.
	Reason string
	// Loops are the source lines of the worksharing loops that take their bounds
	// from the call, by line, each once; a refused call may have some too. Loops
	// without debug information are not in it, and of loops of equal length whose
	// share gcc computes but once only the first is.
	Loops []ident.Location
}

// refused returns a verdict against.
func refused(format string, args ...any) Verdict {
	return Verdict{Reason: fmt.Sprintf(format, args...)}
}

// Judge decides on the loop whose bounds the call that returns to site, an ELF
// virtual address, fetches: one of omp_get_thread_num in gcc's code, or of
// GOMP_loop_*_start for schedule(runtime), of __kmpc_for_static_init_* in clang's.
func (b *Binary) Judge(site uint64) Verdict {
	fn, _, call, v := b.call(site)
	switch {
	case v.Reason != "":
		return v
	case strings.HasPrefix(call.callee, staticInit):
		return b.judgeStatic(fn, call, false)
	case strings.HasPrefix(call.callee, atRunTime):
		return b.judgeStatic(fn, call, true)
	case strings.HasPrefix(call.callee, "GOMP_parallel_loop_"):
		return refused("its region begins with the loop, in one call%s, and the region's code is elsewhere", b.place(call.pc))
	}
	if v = b.judgeCall(site); v.Permutable {
		if why := b.personal(fn, true); why != "" {
			v.Permutable, v.Reason = false, why
		}
	}
	return v
}

// judgeCall decides what becomes of the result of the call of omp_get_thread_num
// that returns to site, and of nothing else.
func (b *Binary) judgeCall(site uint64) Verdict {
	_, code, call, v := b.call(site)
	switch {
	case v.Reason != "":
		return v
	case call.callee != threadNum:
		return refused("the thread number comes from %s, not from %s itself%s", calleeName(call.callee), threadNum, b.place(call.pc))
	}
	f := newFlow(b, code, site)
	f.run()
	return f.verdict()
}

// call finds the call that returns to site, and the function that it is in; or v
// says why not.
func (b *Binary) call(site uint64) (fn symbol.Function, code *function, call step, v Verdict) {
	fn, ok := b.module.FunctionAt(site - 1)
	if !ok {
		return fn, nil, call, refused("no symbol tells where the function around %#x begins: the file is stripped, rebuild it without -s", site)
	}
	code, err := b.decode(fn)
	if err != nil {
		return fn, nil, call, refused("%v", err)
	}
	if call, ok = code.returnsTo(site); !ok {
		return fn, nil, call, refused("no call returns to %#x in %s: this is another build", site, fn.Symbol)
	}
	return fn, code, call, v
}

// verdict sums up what the flow found.
func (f *flow) verdict() Verdict {
	v := Verdict{Loops: f.loops()}
	switch at, why := f.first(); {
	case why != "":
		v.Reason = why + f.binary.place(at)
	case len(f.shares) == 0:
		v.Reason = "the thread number reaches no loop"
	default:
		v.Permutable = true
		if len(v.Loops) > 1 {
			v.Reason = "several loops share it: they are permuted together"
		}
	}
	return v
}

// first returns the objection at the lowest address.
func (f *flow) first() (at uint64, why string) {
	for a, w := range f.objections {
		if why == "" || a < at {
			at, why = a, w
		}
	}
	return at, why
}

// loops returns the source lines of the divisions whose shares were used.
func (f *flow) loops() []ident.Location {
	var out []ident.Location
	seen := map[string]bool{}
	for div := range f.shares {
		l, ok := f.binary.line(div)
		if key := fmt.Sprint(l.File, ":", l.Line); ok && !seen[key] {
			seen[key] = true
			out = append(out, l)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].File != out[j].File {
			return out[i].File < out[j].File
		}
		return out[i].Line < out[j].Line
	})
	return out
}

// line returns the source line of an instruction.
func (b *Binary) line(vaddr uint64) (ident.Location, bool) {
	if chain := b.module.Code(vaddr).Inlined; len(chain) > 0 {
		return chain[0], true
	}
	return ident.Location{}, false
}

// place says where in the source an instruction is: " at app.c:41", or its
// address where the debug information does not tell.
func (b *Binary) place(vaddr uint64) string {
	if l, ok := b.line(vaddr); ok {
		return fmt.Sprintf(" at %s:%d", l.File[strings.LastIndexByte(l.File, '/')+1:], l.Line)
	}
	return fmt.Sprintf(" at address %#x", vaddr)
}

// Binary is an ELF file whose code can be judged. Its methods may be called by
// several goroutines.
type Binary struct {
	module *symbol.Module
	image
	others []*Binary // see Among

	mu     sync.Mutex
	bodies map[uint64]*body // by the function's address
	bounds map[uint64]bool  // calls for the thread number that reach bounds alone

	// fortran is whether flang's runtime, which is linked statically, calls none of the
	// program's procedures but those that it is given the address of.
	fortran bool
}
