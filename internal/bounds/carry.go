package bounds

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"numaopt/internal/symbol"
)

// What a thread alone has, beside what its own number or identity leads to, is its
// registers and the frames of its stack. Where the loops of a region are in functions of
// their own, which the region calls, a thread can take data from one loop to another
// only by what such a function returns, by a frame that outlives it, or by memory that it
// writes after the last barrier of the one and reads before the first of the other.
// Carries proves of all executions, not of one that was traced, that there is none of
// these: no frame's address gets anywhere but into registers, frames and arguments, and
// no loop's function, nor what it calls, writes through one of a caller's. What is not
// understood is an objection.

// level is whose frame a value may point into.
type level uint8

const (
	noFrame     level = iota // no frame of the region
	ownFrame                 // of the function itself
	callerFrame              // of those that called it
)

// callerMemory and stackArgs are bits, beside those of registers, in what a function is
// given: the callers' frames may hold addresses of frames, and so may its arguments on
// the stack.
const (
	callerMemory = 1 << (16 + iota)
	stackArgs
)

// chainReg is the register in which gcc passes the frame of a procedure to those within it.
const chainReg = 10

// writesThrough is the functions of other files that loops and their regions may call, by
// the registers of the pointers that they write through.
var writesThrough = map[string][]int{
	"GOMP_barrier": nil, "__kmpc_barrier": nil, "__kmpc_for_static_fini": nil, "__kmpc_global_thread_num": nil,
	numThreads: nil, threadNum: nil, "__stack_chk_fail": nil,
	"memcpy": {7}, "memmove": {7}, "memset": {7},
	"sqrt": nil, "sin": nil, "cos": nil, "tan": nil, "exp": nil, "log": nil, "pow": nil, "fmod": nil, "fabs": nil, "atan2": nil, "cbrt": nil,
	"sqrtf": nil, "sinf": nil, "cosf": nil, "expf": nil, "logf": nil, "powf": nil,
}

// Carries says why a thread may carry data of its own from one loop to another of the
// region whose outlined function is at address region; empty if it cannot, and the
// loops, whose bounds the calls that return to sites fetch, need not be permuted alike.
func (b *Binary) Carries(region uint64, sites []uint64) string {
	root, ok := b.module.FunctionAt(region)
	if !ok {
		return "no symbol tells where its region begins"
	}
	c := carry{binary: b, given: map[uint64]uint32{}, frames: map[uint64]*frame{}}
	c.give(root, 0)
	for c.why == "" && len(c.work) > 0 {
		fn := c.work[0]
		c.work = c.work[1:]
		c.read(fn, fn.Lo == root.Lo)
	}
	for _, site := range sites {
		if c.why == "" && !slices.Contains(c.sites, site) {
			c.why = "one of its loops is in code that was not found from it"
		}
	}
	for _, f := range c.frames {
		if c.why == "" && f.site != 0 && c.reaches(f, map[*frame]bool{}) {
			c.why = "a function with one of its loops calls one with another" + b.place(f.site-1)
		}
	}
	return c.why
}

// carry is a proof about one region.
type carry struct {
	binary *Binary
	given  map[uint64]uint32 // by function: the registers, and more, that may point into a caller's frame
	work   []symbol.Function
	frames map[uint64]*frame
	sites  []uint64 // of the loops that were found
	why    string
}

// give notes what a function is called with, and that it must be read with that.
func (c *carry) give(fn symbol.Function, given uint32) {
	old, seen := c.given[fn.Lo]
	if seen && old|given == old {
		return
	}
	if len(c.given) > farthest {
		c.object(0, fmt.Sprintf("its region calls more than %d functions", farthest))
	}
	c.given[fn.Lo] = old | given
	c.work = append(c.work, fn)
}

// object notes the first thing against.
func (c *carry) object(pc uint64, why string) {
	if c.why != "" {
		return
	}
	if c.why = why; pc != 0 {
		c.why += c.binary.place(pc)
	}
}

// reaches reports whether f calls a function with a loop.
func (c *carry) reaches(f *frame, seen map[*frame]bool) bool {
	for _, lo := range f.calls {
		to := c.frames[lo]
		if to == nil || seen[to] {
			continue
		}
		if seen[to] = true; to.site != 0 || c.reaches(to, seen) {
			return true
		}
	}
	return false
}

// read looks at one function as it is called so far.
func (c *carry) read(fn symbol.Function, root bool) {
	f := c.frames[fn.Lo]
	if f == nil {
		code, err := c.binary.decode(fn)
		if err != nil {
			c.object(0, err.Error())
			return
		}
		f = &frame{carry: c, code: code}
		c.frames[fn.Lo] = f
		f.scan(root)
	}
	for c.why == "" {
		stored := f.stored
		if f.run(); f.stored == stored {
			return
		}
	}
}

// frame is a function with its frame.
type frame struct {
	*carry
	code   *function
	site   uint64   // where the call for its loop's bounds returns to; 0 is no loop
	calls  []uint64 // functions of the program
	stored level    // the most of what it ever stores in its frame
	in     map[int]*carried
	queue  []int
}

// scan objects to what no function of the region may have, and finds its loop.
func (f *frame) scan(root bool) {
	for i := range f.code.steps {
		s := &f.code.steps[i]
		if why := f.strange(s); why != "" {
			f.object(s.pc, why)
		}
		if s.callee != threadNum && !strings.HasPrefix(s.callee, staticInit) {
			continue
		}
		switch {
		case root:
			f.object(s.pc, "one of its loops is in the region's own code, where a thread may keep data in registers")
		case f.site != 0:
			f.object(s.pc, "a function has several of its loops")
		}
		f.site = s.next
	}
	if f.site != 0 && f.why == "" {
		f.loop()
	}
}

// loop objects to a function with a loop by which a thread may take something along
// besides its callers' frames.
func (f *frame) loop() {
	if v := f.binary.Judge(f.site); !v.Permutable {
		f.object(0, v.Reason)
	}
	f.sites = append(f.sites, f.site)
	if !f.binary.module.ReturnsNothing(f.code.Lo) {
		f.object(f.code.Lo, "a function with one of its loops returns a value, or has no debug information that says it does not,")
	}
	f.tail()
}

// tail objects to what follows the loop but no barrier: the threads go on from there
// into the next loop's function.
func (f *frame) tail() {
	first := f.code.at[f.site]
	after, unguarded := f.reached(first), f.unguarded()
	if unguarded[first] {
		f.object(f.site-1, "no barrier follows one of its loops before its function returns")
	}
	for i := range f.code.steps {
		s := &f.code.steps[i]
		if !after[i] || !unguarded[i] {
			continue
		}
		_, store := s.Args[0].(x86asm.Mem)
		switch {
		case s.Op == x86asm.CALL || s.leaves:
			f.object(s.pc, "a function with one of its loops calls another after the last barrier")
		case store && !reads(s.Op) && !s.frames() || isString(s.Op.String()):
			f.object(s.pc, "a function with one of its loops writes to memory after the last barrier")
		}
	}
}

// frames reports whether the memory operand of s is plainly in the frame.
func (s *step) frames() bool {
	m, ok := s.Args[0].(x86asm.Mem)
	return ok && m.Base == x86asm.RSP && m.Segment == 0
}

// next is where control may go from step i; a call returns.
func (f *frame) next(i int) (to []int) {
	s := &f.code.steps[i]
	if s.target != 0 {
		to = append(to, f.code.at[s.target])
	}
	ends := s.Op == x86asm.RET || s.Op == x86asm.JMP || s.Op == x86asm.UD2 || s.Op == x86asm.HLT || s.callee == "__stack_chk_fail"
	if j, ok := f.code.at[s.next]; ok && !ends {
		to = append(to, j)
	}
	return to
}

// reached is the steps that control may come to from step i.
func (f *frame) reached(i int) map[int]bool {
	seen := map[int]bool{i: true}
	for work := []int{i}; len(work) > 0; work = work[1:] {
		for _, j := range f.next(work[0]) {
			if !seen[j] {
				seen[j] = true
				work = append(work, j)
			}
		}
	}
	return seen
}

// unguarded is the steps from which the function may return without a barrier.
func (f *frame) unguarded() map[int]bool {
	from := map[int][]int{}
	seen := map[int]bool{}
	var work []int
	for i := range f.code.steps {
		s := &f.code.steps[i]
		for _, j := range f.next(i) {
			from[j] = append(from[j], i)
		}
		if !isBarrier(s) && (s.Op == x86asm.RET || s.leaves) {
			seen[i] = true
			work = append(work, i)
		}
	}
	for ; len(work) > 0; work = work[1:] {
		for _, i := range from[work[0]] {
			if !seen[i] && !isBarrier(&f.code.steps[i]) {
				seen[i] = true
				work = append(work, i)
			}
		}
	}
	return seen
}

func isBarrier(s *step) bool {
	return !isJcc(s.Op) && (s.callee == "GOMP_barrier" || s.callee == "__kmpc_barrier")
}

// unfollowed is instructions by which threads may differ or carry something along, and
// such as change the stack in ways of their own.
var unfollowed = []x86asm.Op{
	x86asm.MFENCE, x86asm.RDTSC, x86asm.RDTSCP, x86asm.RDRAND, x86asm.CPUID, x86asm.SYSCALL, x86asm.INT, x86asm.LSL,
	x86asm.LDMXCSR, x86asm.STMXCSR, x86asm.FLDCW, x86asm.FLDENV, x86asm.FRSTOR, x86asm.FXRSTOR, x86asm.XRSTOR,
	x86asm.MASKMOVDQU, x86asm.MASKMOVQ, x86asm.ENTER, x86asm.PUSHF, x86asm.PUSHFQ, x86asm.POPF, x86asm.POPFQ,
}

// strange says why a step may tell threads apart, or is not followed.
func (f *frame) strange(s *step) string {
	for _, p := range s.Prefix {
		if p&^(x86asm.PrefixImplicit|x86asm.PrefixIgnored|x86asm.PrefixInvalid) == x86asm.PrefixLOCK {
			return "it has an atomic operation, by which threads may draw lots,"
		}
	}
	switch {
	case s.Op == x86asm.XCHG && !(isReg(s.Args[0]) && isReg(s.Args[1])):
		return "it has an atomic operation, by which threads may draw lots,"
	case slices.Contains(unfollowed, s.Op), s.Op == x86asm.POP && !isReg(s.Args[0]):
		return fmt.Sprintf("it has an instruction that is not followed (%v)", s.Op)
	}
	calls := s.Op == x86asm.CALL || s.leaves
	switch {
	case ownData(s):
		return whyOwnData
	case calls && !f.known(s):
		return "it calls " + calleeName(s.callee) + ", of which nobody knows whether threads differ by it,"
	case !calls && s.target == 0 && (s.Op == x86asm.JMP || isRel(s.Args[0])):
		return "it has a jump that is not followed"
	}
	return ""
}

// known reports whether it is known what a call does to frames.
func (f *frame) known(s *step) bool {
	if _, ok := f.callee(s); ok {
		return true
	}
	_, ok := writesThrough[s.callee]
	return (ok || strings.HasPrefix(s.callee, staticInit)) && len(f.binary.module.FunctionsNamed(s.callee)) == 0
}

// callee is the function of this file that a step calls.
func (f *frame) callee(s *step) (fn symbol.Function, ok bool) {
	if a, rel := s.Args[0].(x86asm.Rel); rel && (s.Op == x86asm.CALL || s.leaves) {
		target := s.next + uint64(int64(a))
		fn, ok = f.binary.module.FunctionAt(target)
		ok = ok && fn.Lo == target
	}
	return fn, ok
}
