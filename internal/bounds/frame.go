package bounds

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// pointer is what a register holds, as far as it may point into a frame.
type pointer struct {
	level level
	exact bool  // it points to at, in the function's own frame
	at    int64 // the distance from the return address
}

func joined(a, b pointer) pointer {
	if a == b {
		return a
	}
	return pointer{level: max(a.level, b.level)}
}

// carried is what registers and places in the frame may point to before a step. What is
// written over a place at unknown bounds is not taken off it.
type carried struct {
	regs  [16]pointer
	slots map[int64]level
}

func (st *carried) clone() *carried {
	c := &carried{regs: st.regs, slots: make(map[int64]level, len(st.slots))}
	for k, l := range st.slots {
		c.slots[k] = l
	}
	return c
}

// merge widens st by what other knows and reports whether that changed it.
func (st *carried) merge(other *carried) (changed bool) {
	for i, p := range other.regs {
		if v := joined(st.regs[i], p); v != st.regs[i] {
			st.regs[i], changed = v, true
		}
	}
	for k, l := range other.slots {
		if l > st.slots[k] {
			st.slots[k], changed = l, true
		}
	}
	return changed
}

// mostSteps bounds how long one function is followed: seconds.
const mostSteps = 1 << 22

// run follows all paths of the function, as it is called so far, and gives those that it
// calls what they get.
func (f *frame) run() {
	f.in = map[int]*carried{}
	entry := &carried{slots: map[int64]level{}}
	given := f.given[f.code.Lo]
	for r := range entry.regs {
		if given>>r&1 != 0 {
			entry.regs[r] = pointer{level: callerFrame}
		}
	}
	entry.regs[rsp] = pointer{level: ownFrame, exact: true}
	f.calls = nil
	f.send(f.code.at[f.code.Lo], entry)
	for steps := 0; len(f.queue) > 0 && f.why == ""; steps++ {
		if steps > mostSteps {
			f.object(f.code.Lo, "it has a function that is too large to follow")
		}
		i := f.queue[len(f.queue)-1]
		f.queue = f.queue[:len(f.queue)-1]
		st := f.in[i].clone()
		f.step(st, &f.code.steps[i])
		for _, j := range f.next(i) {
			f.send(j, st)
		}
	}
}

// send lets control arrive at step i with st.
func (f *frame) send(i int, st *carried) {
	if old := f.in[i]; old == nil {
		f.in[i] = st.clone()
	} else if !old.merge(st) {
		return
	}
	f.queue = append(f.queue, i)
}

func (f *frame) step(st *carried, s *step) {
	switch {
	case s.Op == x86asm.CALL || s.leaves:
		f.call(st, s)
	case s.Op == x86asm.NOP || s.Op == x86asm.RET || s.Op == x86asm.JMP || isJcc(s.Op):
	case s.Op == x86asm.PUSH:
		from := f.operand(st, s, 0)
		st.regs[rsp] = st.regs[rsp].moved(-8)
		f.store(st, s, st.regs[rsp], from.level)
	case s.Op == x86asm.POP:
		f.set(st, s, 0, pointer{level: f.load(st, st.regs[rsp], 8)})
		if s.Args[0] != x86asm.RSP {
			st.regs[rsp] = st.regs[rsp].moved(8)
		}
	case s.Op == x86asm.LEAVE:
		st.regs[rsp] = st.regs[5]
		st.regs[5] = pointer{level: f.load(st, st.regs[rsp], 8)}
		st.regs[rsp] = st.regs[rsp].moved(8)
	case isString(s.Op.String()):
		f.copies(st, s)
	default:
		f.compute(st, s)
	}
}

// moved is a pointer some bytes on.
func (p pointer) moved(by int64) pointer {
	if p.exact {
		p.at += by
	}
	return p
}

// call gives a function of the program what registers and frames hold; others are known.
func (f *frame) call(st *carried, s *step) {
	if fn, ok := f.callee(s); ok {
		given := f.gives(st)
		f.calls = append(f.calls, fn.Lo)
		f.give(fn, given)
		if given != 0 && !f.binary.module.ReturnsNothing(fn.Lo) {
			st.regs[0], st.regs[2] = pointer{level: callerFrame}, pointer{level: callerFrame}
		}
		return // gcc knows which registers it leaves alone (-fipa-ra)
	}
	through := writesThrough[s.callee]
	if strings.HasPrefix(s.callee, staticInit) {
		through = []int{1, 8, 9}
	}
	for _, r := range through {
		if st.regs[r].level == callerFrame {
			f.object(s.pc, whyWrites)
		}
	}
	result := pointer{}
	if strings.HasPrefix(s.callee, "mem") {
		result.level = st.regs[7].level
		if s.callee != "memset" && f.memory(st, st.regs[6], 64) > noFrame {
			f.object(s.pc, whyEscapes)
		}
	}
	for _, r := range []int{1, 2, 6, 7, 8, 9, 10, 11} {
		st.regs[r] = pointer{}
	}
	st.regs[0] = result
}

// gives is what a function that is called now may get of frames.
func (f *frame) gives(st *carried) (given uint32) {
	for _, r := range append(argRegs[:], chainReg, 0) {
		if st.regs[r].level > noFrame {
			given |= 1 << r
		}
	}
	if f.stored > noFrame {
		given |= callerMemory | stackArgs
	}
	return given | f.given[f.code.Lo]&callerMemory
}

const (
	whyWrites  = "a function that it calls writes through a pointer to data of its caller, which may be each thread's own,"
	whyEscapes = "the address of data on a thread's stack may be stored where it is not followed"
)

// address is what a memory operand points to.
func (f *frame) address(st *carried, s *step, m x86asm.Mem) pointer {
	if m.Segment == x86asm.FS || m.Segment == x86asm.GS {
		return pointer{}
	}
	var base, index pointer
	if n, _, ok := regOf(m.Base); ok {
		base = st.regs[n].moved(m.Disp)
	}
	if n, _, ok := regOf(m.Index); ok {
		index = st.regs[n]
	} else if !s.vague {
		return base
	}
	return pointer{level: max(base.level, index.level)}
}

// memory is what size bytes that p points to may point to.
func (f *frame) memory(st *carried, p pointer, size int64) level {
	switch {
	case p.level == callerFrame && f.given[f.code.Lo]&callerMemory != 0:
		return callerFrame
	case p.level != ownFrame:
		return noFrame
	}
	return f.load(st, p, size)
}

// load is what size bytes of the function's own frame may point to.
func (f *frame) load(st *carried, p pointer, size int64) (l level) {
	if !p.exact {
		return f.stored
	}
	if p.at+size > 8 && f.given[f.code.Lo]&stackArgs != 0 {
		return callerFrame
	}
	for at, x := range st.slots {
		if at < p.at+size && p.at < at+8 {
			l = max(l, x)
		}
	}
	return l
}

// store writes what points to l at what p points to.
func (f *frame) store(st *carried, s *step, p pointer, l level) {
	switch {
	case p.level == callerFrame:
		f.object(s.pc, whyWrites)
	case p.level == noFrame:
		if l > noFrame {
			f.object(s.pc, whyEscapes)
		}
	case l > noFrame:
		f.stored = max(f.stored, l)
		if p.exact {
			st.slots[p.at] = l
		}
	case p.exact && (s.Op == x86asm.MOV && s.MemBytes == 8 || s.Op == x86asm.PUSH):
		delete(st.slots, p.at)
	}
}

// operand is what operand i may point to.
func (f *frame) operand(st *carried, s *step, i int) pointer {
	switch a := s.Args[i].(type) {
	case x86asm.Reg:
		if n, size, ok := regOf(a); ok && size == 8 {
			return st.regs[n]
		}
	case x86asm.Mem:
		if s.MemBytes == 8 || s.MemBytes == 0 {
			return pointer{level: f.memory(st, f.address(st, s, a), 8)}
		}
	}
	return pointer{}
}

// set writes to the register that operand i is.
func (f *frame) set(st *carried, s *step, i int, p pointer) {
	n, size, ok := regOf(s.Args[i])
	switch {
	case !ok || size < 4: // the rest remains
	case size == 4:
		st.regs[n] = pointer{}
	default:
		st.regs[n] = p
	}
}

// compute executes a step of registers and memory.
func (f *frame) compute(st *carried, s *step) {
	p := f.result(st, s)
	if m, ok := s.Args[0].(x86asm.Mem); ok && !reads(s.Op) {
		f.store(st, s, f.address(st, s, m), p.level)
	}
	f.vectors(st, s)
	implied := implicit(s.Op.String())
	if s.Op == x86asm.MUL || s.Op == x86asm.IMUL && s.Args[1] == nil || s.Op == x86asm.DIV || s.Op == x86asm.IDIV {
		implied = []int{0, 2}
	}
	for _, r := range implied {
		st.regs[r] = pointer{level: max(p.level, st.regs[r].level)}
	}
	switch s.Op {
	case x86asm.CDQE:
		st.regs[0] = pointer{}
	case x86asm.CQO, x86asm.CDQ:
		st.regs[2] = pointer{}
	case x86asm.CMP, x86asm.TEST:
	case x86asm.XCHG, x86asm.XADD, x86asm.MULX:
		p = pointer{level: max(p.level, f.operand(st, s, 0).level)}
		f.set(st, s, 0, p)
		f.set(st, s, 1, p)
	default:
		f.set(st, s, 0, p)
	}
}

// result is what the result of a step may point to: whatever one of its operands does.
func (f *frame) result(st *carried, s *step) pointer {
	switch s.Op {
	case x86asm.MOV:
		return f.operand(st, s, 1)
	case x86asm.LEA:
		return f.address(st, s, s.Args[1].(x86asm.Mem))
	case x86asm.XOR, x86asm.SUB:
		if s.Args[0] == s.Args[1] && isReg(s.Args[0]) {
			return pointer{}
		}
	}
	first := f.operand(st, s, 0)
	if imm, ok := s.Args[1].(x86asm.Imm); ok && first.exact {
		switch s.Op {
		case x86asm.ADD:
			return first.moved(int64(imm))
		case x86asm.SUB:
			return first.moved(-int64(imm))
		}
	}
	l := first.level
	if writesOnly(s.Op.String()) || s.Args[1] == nil && isReg(s.Args[0]) && s.vector {
		l = noFrame
	}
	for i := 1; i < len(s.Args) && s.Args[i] != nil; i++ {
		l = max(l, f.operand(st, s, i).level)
	}
	return pointer{level: l}
}

// vectors objects to addresses that leave the general registers for others.
func (f *frame) vectors(st *carried, s *step) {
	_, memory := s.Args[0].(x86asm.Mem)
	if s.Op == x86asm.CMP || s.Op == x86asm.TEST || isReg(s.Args[0]) || memory && !reads(s.Op) {
		return
	}
	for i, a := range s.Args {
		l := noFrame
		switch m, ok := a.(x86asm.Mem); {
		case !ok && a != nil:
			l = f.operand(st, s, i).level
		case ok && !scalar(s):
			l = f.memory(st, f.address(st, s, m), accessSize(s))
		}
		if l > noFrame {
			f.object(s.pc, whyEscapes)
		}
	}
}

// scalar reports whether a step reads a number of 8 bytes or less, which no compiler
// does with an address.
func scalar(s *step) bool {
	name := s.Op.String()
	return strings.HasSuffix(name, "SD") || strings.HasSuffix(name, "SS") || strings.HasPrefix(name, "MOVS") || strings.HasPrefix(name, "CVT") || name[0] == 'F'
}

// copies executes a string instruction.
func (f *frame) copies(st *carried, s *step) {
	name := s.Op.String()
	l := noFrame
	switch {
	case strings.HasPrefix(name, "STOS"):
		l = st.regs[0].level
	case strings.HasPrefix(name, "MOVS"):
		l = f.memory(st, pointer{level: st.regs[6].level}, 8)
	case strings.HasPrefix(name, "LODS"):
		st.regs[0] = pointer{level: callerFrame}
		return
	default:
		return
	}
	f.store(st, s, pointer{level: st.regs[7].level}, l)
}

// isString reports whether name is that of an instruction on strings.
func isString(name string) bool {
	if len(name) != 5 {
		return false
	}
	switch name[:4] {
	case "STOS", "LODS", "SCAS", "MOVS", "CMPS":
		return strings.ContainsRune("BWDQ", rune(name[4]))
	}
	return false
}

// reads reports whether an instruction only reads its first operand.
func reads(op x86asm.Op) bool {
	switch op {
	case x86asm.CMP, x86asm.TEST, x86asm.PUSH, x86asm.MUL, x86asm.DIV, x86asm.IDIV, x86asm.NOP, x86asm.BT,
		x86asm.PREFETCHNTA, x86asm.PREFETCHT0, x86asm.PREFETCHT1, x86asm.PREFETCHT2, x86asm.PREFETCHW,
		x86asm.FLD, x86asm.FILD, x86asm.FADD, x86asm.FMUL, x86asm.FSUB, x86asm.FSUBR, x86asm.FDIV, x86asm.FDIVR,
		x86asm.FCOM, x86asm.FCOMP, x86asm.FIADD, x86asm.FIMUL, x86asm.FISUB, x86asm.FISUBR, x86asm.FIDIV, x86asm.FIDIVR:
		return true
	}
	return false
}
