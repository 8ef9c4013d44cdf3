package bounds

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// flow follows the result of one call through a function.
type flow struct {
	binary *Binary
	code   *function
	site   uint64

	in      map[int]*state // before each leader that was reached
	work    []int
	visited []bool
	// stray is what holds where control arrives by no jump that is seen: at landing
	// pads of exceptions, and at the cases of a switch.
	stray *state

	// What the second pass finds, when the states no longer change.
	judging    bool
	objections map[uint64]string // address → why not
	compared   map[uint64]uint64 // division → a comparison of t with its rest
	shares     map[uint64]uint64 // division → a multiplication of t by its quotient
	spilled    map[slot]uint64   // slot of a secret → the store
	loaded     map[slot]bool     // slots that a secret was loaded from
	taken      map[slot]bool     // places in frames whose address is taken
}

func newFlow(b *Binary, code *function, site uint64) *flow {
	return &flow{
		binary: b, code: code, site: site, in: map[int]*state{},
		visited:    make([]bool, len(code.steps)),
		objections: map[uint64]string{}, compared: map[uint64]uint64{}, shares: map[uint64]uint64{},
		spilled: map[slot]uint64{}, loaded: map[slot]bool{}, taken: map[slot]bool{},
	}
}

// run brings the states to their fixed point, then judges every instruction.
func (f *flow) run() {
	entry := &state{slots: map[slot]held{}}
	entry.regs[rsp] = value{kind: stack}
	f.send(f.code.at[f.code.Lo], entry)
	f.settle()
	for i := range f.code.steps {
		if !f.visited[i] && f.stray != nil && f.code.steps[i].Op != x86asm.NOP { // not padding
			f.send(i, f.stray)
			f.settle()
		}
	}
	f.judging = true
	for i, st := range f.in {
		f.walk(i, st.clone())
	}
	f.checkSpills()
	f.checkShares()
}

// send lets control arrive at step i with st.
func (f *flow) send(i int, st *state) {
	f.code.leaders[i] = true
	switch old := f.in[i]; {
	case f.judging:
	case old == nil:
		f.in[i] = st.clone()
		f.work = append(f.work, i)
	case old.merge(st):
		f.work = append(f.work, i)
	}
}

func (f *flow) settle() {
	for len(f.work) > 0 {
		i := f.work[len(f.work)-1]
		f.work = f.work[:len(f.work)-1]
		f.walk(i, f.in[i].clone())
	}
}

// walk executes from step i to the end of the basic block. It owns st.
func (f *flow) walk(i int, st *state) {
	for {
		s := &f.code.steps[i]
		f.visited[i] = true
		falls := f.step(st, s)
		i++
		if !falls || i == len(f.code.steps) || f.code.steps[i].pc != s.next {
			return
		}
		if f.code.leaders[i] {
			f.send(i, st)
			return
		}
	}
}

// step executes one instruction and reports whether control may fall through.
func (f *flow) step(st *state, s *step) bool {
	switch {
	case s.Op == x86asm.NOP || s.Op == x86asm.PAUSE:
	case s.Op == x86asm.UD2 || s.Op == x86asm.HLT:
		return false
	case s.Op == x86asm.RET:
		f.leave(st, s)
		return false
	case s.Op == x86asm.JMP:
		f.jump(st, s)
		return false
	case isJcc(s.Op):
		f.branch(st, s)
	case s.Op == x86asm.CALL:
		f.call(st, s)
	default:
		f.execute(st, s)
	}
	return true
}

// object notes why the call must not be permuted.
func (f *flow) object(s *step, why string) {
	if _, ok := f.objections[s.pc]; f.judging && !ok {
		f.objections[s.pc] = why
	}
}

// jump follows a JMP: within the function, out of it, or through a table.
func (f *flow) jump(st *state, s *step) {
	switch {
	case s.target != 0:
		f.send(f.code.at[s.target], st)
	case s.leaves:
		f.call(st, s)
		f.leave(st, s)
	default:
		if st.holds() {
			f.object(s, "the thread number is kept across a jump through a table (switch), which is not followed")
		}
		f.strayFrom(st)
	}
}

// branch follows a Jcc both ways.
func (f *flow) branch(st *state, s *step) {
	arm := st.arm
	if f.tells(st, s) {
		arm = s.pc << 1
	}
	if s.target != 0 {
		taken := st.clone()
		if arm != st.arm {
			taken.arm = arm | 1
		}
		f.send(f.code.at[s.target], taken)
	} else if st.holds() {
		f.object(s, "the thread number is kept across a jump out of the function")
	}
	st.arm = arm
}

// tells reports whether the flags hold t < rest, as the condition asks for it,
// and objects to other conditions on flags that tell the thread number.
func (f *flow) tells(st *state, s *step) bool {
	if !st.flags.secret() {
		return false
	}
	fits := " L GE B AE "
	if st.flags.off == 1 { // rest was compared with t
		fits = " G LE A BE "
	}
	if st.flags.kind != less || !strings.Contains(fits, " "+condition(s.Op)+" ") {
		f.object(s, "the thread number decides in a way that is not understood")
		return false
	}
	return true
}

// pointerArgs are the integer arguments, by number, of callees that gcc itself
// calls; those of others are not known. A number that a register holds by chance
// is not passed to them.
var pointerArgs = map[string]int{
	"GOMP_barrier": 0, "GOMP_critical_start": 0, "GOMP_critical_end": 0, "GOMP_atomic_start": 0, "GOMP_atomic_end": 0,
	"GOMP_loop_end": 0, "GOMP_loop_end_nowait": 0, "GOMP_single_start": 0, "GOMP_taskwait": 0,
	"GOMP_sections_end": 0, "GOMP_sections_end_nowait": 0, "GOMP_critical_name_start": 1, "GOMP_critical_name_end": 1,
	"__stack_chk_fail": 0, "memcpy": 3, "memmove": 3, "memset": 3, "malloc": 1, "free": 1, "abort": 0, "omp_get_wtime": 0,
	"sqrt": 0, "sin": 0, "cos": 0, "tan": 0, "exp": 0, "log": 0, "pow": 0, "fmod": 0, "fabs": 0, "atan2": 0, "cbrt": 0,
	"sqrtf": 0, "sinf": 0, "cosf": 0, "expf": 0, "logf": 0, "powf": 0,
}

// argRegs are the registers of integer arguments in the System V ABI, AMD64
// supplement, §3.2.3; RAX after them counts those in vector registers.
var argRegs = [6]int{7, 6, 2, 1, 8, 9}

// call executes a CALL, or a jump to another function.
func (f *flow) call(st *state, s *step) {
	ours := s.callee == threadNum || s.callee == numThreads
	args, known := pointerArgs[s.callee]
	if !known {
		args = len(argRegs)
	}
	for _, r := range argRegs[:args] {
		if !ours && st.regs[r].secret() {
			f.object(s, "the thread number may be passed to "+calleeName(s.callee))
		}
	}
	f.readArgs(st, s, 0)
	if !ours {
		f.effect(st, s)
	}
	for _, r := range []int{0, 1, 2, 6, 7, 8, 9, 10, 11} { // caller-saved
		st.regs[r] = value{}
	}
	st.flags = value{}
	f.strayFrom(st)
	switch {
	case s.next == f.site && s.Op == x86asm.CALL:
		st.regs[0] = value{kind: thread}
	case s.callee == numThreads:
		st.regs[0] = value{kind: threads}
	}
}

func calleeName(callee string) string {
	if callee == "" {
		return "a function"
	}
	return callee
}

func (f *flow) strayFrom(st *state) {
	switch {
	case f.judging:
	case f.stray == nil:
		f.stray = st.clone()
	default:
		f.stray.merge(st)
	}
}

// leave executes a RET. An outlined function returns nothing.
func (f *flow) leave(st *state, s *step) {
	if st.regs[0].secret() && !strings.Contains(f.code.Symbol, "._omp_fn.") {
		f.object(s, "the thread number may be returned")
	}
	f.effect(st, s)
}

// effect objects to what others can see happening on one arm only of t < rest.
func (f *flow) effect(st *state, s *step) {
	if st.arm != 0 {
		f.object(s, "more than the bounds of a loop depends on the comparison of the thread number with a remainder")
	}
}

// checkSpills objects to secrets in stack slots that something else may read:
// through a pointer to data that begins below them, or a callee whose argument
// the slot is. gcc never reads an argument back.
func (f *flow) checkSpills() {
	for k, pc := range f.spilled {
		s := &f.code.steps[f.code.at[pc]]
		if !f.loaded[k] {
			f.object(s, "the thread number is stored on the stack and not read back")
		}
		for o := range f.taken {
			if o.frame == k.frame && o.off <= k.off || o.frame != k.frame && o.frame != 0 {
				f.object(s, "the thread number is stored on the stack within reach of a pointer")
			}
		}
	}
}

// checkShares objects to a share t*(n/T) without the comparison with n%T, and the
// reverse: the program divides the work itself.
func (f *flow) checkShares() {
	const own = "the program computes a share of its own from the thread number, or was built without optimisation (-O0)"
	for div, pc := range f.shares {
		if _, ok := f.compared[div]; !ok {
			f.object(&f.code.steps[f.code.at[pc]], own)
		}
	}
	for div, pc := range f.compared {
		if _, ok := f.shares[div]; !ok {
			f.object(&f.code.steps[f.code.at[pc]], own)
		}
	}
}
