package bounds

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// Why a use of the thread number is refused.
const (
	whyConstant = "the thread number is compared with a constant (master, masked, or the program's own test)"
	whyCompared = "the thread number is compared with something else than the remainder of a loop's iterations"
	whyIndex    = "the thread number is used as an index of an array"
	whyStored   = "the thread number is stored to memory"
	whyScaled   = "the thread number is multiplied by something else than a share of the iterations (a chunked static loop, an index, or the program's own arithmetic)"
	whyPushed   = "the thread number is passed to a call"
)

// execute executes an instruction that does not transfer control.
func (f *flow) execute(st *state, s *step) {
	if s.Op != x86asm.LEA {
		f.addresses(st, s)
	}
	switch s.Op {
	case x86asm.MOV, x86asm.MOVSXD, x86asm.MOVZX, x86asm.MOVSX:
		f.move(st, s)
	case x86asm.CDQE:
		st.regs[0] = numeric(st.regs[0])
	case x86asm.CDQ, x86asm.CQO:
		f.useReg(st, s, 0)
		st.regs[2] = value{}
	case x86asm.LEA:
		f.lea(st, s)
	case x86asm.ADD, x86asm.SUB, x86asm.INC, x86asm.ADC, x86asm.SBB, x86asm.AND, x86asm.XOR:
		f.arithmetic(st, s)
	case x86asm.IMUL, x86asm.MUL:
		f.multiply(st, s)
	case x86asm.IDIV, x86asm.DIV:
		f.divide(st, s)
	case x86asm.CMP, x86asm.TEST:
		f.compare(st, s)
	case x86asm.PUSH, x86asm.POP, x86asm.LEAVE:
		f.stackOp(st, s)
	case x86asm.XCHG:
		f.exchange(st, s)
	default:
		f.other(st, s)
	}
}

// move executes a copy, perhaps extended.
func (f *flow) move(st *state, s *step) {
	v := f.get(st, s, 1)
	if s.Op != x86asm.MOV {
		v = numeric(v)
	}
	f.set(st, s, 0, v)
}

// numeric is v after an extension, which an address does not survive.
func numeric(v value) value {
	if v.kind == stack {
		return value{}
	}
	return v
}

// lea executes an address computation, which gcc uses for sums as well.
func (f *flow) lea(st *state, s *step) {
	m := s.Args[1].(x86asm.Mem)
	base, index := f.regValue(st, m.Base), f.regValue(st, m.Index)
	var v value
	switch {
	case base.kind == stack && m.Index == 0:
		v = value{stack, base.id, base.off + m.Disp}
	case base.kind == stack:
		f.take(slot{base.id, base.off + m.Disp})
	case m.Index == 0 && m.Disp == 1 && base.kind == quotient:
		v = base
	default:
		v = sum(base, index)
	}
	if v.kind == quotient && (m.Disp != 0 || m.Scale != 1) && m.Index != 0 {
		v = value{}
	}
	if v.kind != quotient && (base.secret() || index.secret()) {
		f.object(s, whyScaled)
	}
	f.set(st, s, 0, v)
}

// sum is a quotient where the other summand says whether the thread has an
// iteration more, and a chunk's where one of them is and the other is no secret.
func sum(a, b value) value {
	if a.kind != quotient && a.kind != chunk {
		a, b = b, a
	}
	if a.kind == quotient && b.kind == chunk {
		a, b = b, a
	}
	switch {
	case a.kind == quotient && b.kind == less && a.id == b.id, a.kind == chunk && !b.secret():
		return a
	}
	return value{}
}

// arithmetic executes a sum, a difference, or a bit operation.
func (f *flow) arithmetic(st *state, s *step) {
	a := f.get(st, s, 0)
	b, imm := value{}, int64(1)
	if s.Op != x86asm.INC {
		b = f.get(st, s, 1)
		imm = immediate(s.Args[1])
	}
	v := f.combine(st, s, a, b, imm)
	if v.kind != quotient && v.kind != zero && (a.secret() || b.secret()) {
		f.object(s, "the thread number is used in the program's own arithmetic")
	}
	st.flags = value{}
	f.set(st, s, 0, v)
}

// combine is the result of an arithmetic instruction on a and b; imm is b where
// that is a constant other than 0.
func (f *flow) combine(st *state, s *step, a, b value, imm int64) value {
	same := s.Args[0] == s.Args[1] && isReg(s.Args[0])
	switch {
	case (s.Op == x86asm.XOR || s.Op == x86asm.SUB) && same:
		return value{kind: zero}
	case s.Op == x86asm.ADC || s.Op == x86asm.SBB:
		if !st.flags.secret() {
			return value{}
		}
		carry := st.flags.kind == less && st.flags.off == 0 && a.kind == quotient && a.id == st.flags.id
		if carry && (s.Op == x86asm.ADC && b.kind == zero || s.Op == x86asm.SBB && imm == -1) {
			return a
		}
		f.object(s, "the thread number decides in a way that is not understood")
	case a.kind == stack && isRSP(s.Args[0]):
		return moveStack(s, a, imm)
	case a.kind == quotient && (s.Op == x86asm.SUB && imm == -1 || s.Op != x86asm.SUB && imm == 1):
		return a
	case s.Op == x86asm.ADD || s.Op == x86asm.SUB && a.kind == chunk:
		return sum(a, b)
	}
	return value{}
}

// moveStack is the stack pointer after an arithmetic instruction. After an
// alignment or an allocation of unknown size a new frame begins.
func moveStack(s *step, a value, imm int64) value {
	switch {
	case s.Op == x86asm.ADD && imm != 0:
		return value{stack, a.id, a.off + imm}
	case s.Op == x86asm.SUB && imm != 0:
		return value{stack, a.id, a.off - imm}
	}
	return value{kind: stack, id: s.pc}
}

// multiply executes a product. That of t and n/T is where the chunk begins.
func (f *flow) multiply(st *state, s *step) {
	st.flags = value{}
	if s.Args[2] != nil { // by a constant
		f.use(st, s, 1, whyScaled)
		f.set(st, s, 0, value{})
		return
	}
	a, b := f.get(st, s, 0), st.regs[0]
	if s.Args[1] != nil {
		b = f.get(st, s, 1)
		f.set(st, s, 0, f.product(st, s, a, b))
		return
	}
	st.regs[0], st.regs[2] = f.product(st, s, a, b), value{}
}

// product is the product of a and b.
func (f *flow) product(st *state, s *step, a, b value) value {
	if b.kind == thread {
		a, b = b, a
	}
	switch {
	case a.kind == thread && b.kind == quotient:
		st.arm = 0
		if f.judging {
			f.shares[b.id] = s.pc
		}
		return value{kind: chunk, id: b.id}
	case a.secret() || b.secret():
		f.object(s, whyScaled)
	}
	return value{}
}

// divide executes a division.
func (f *flow) divide(st *state, s *step) {
	divisor := f.get(st, s, 0)
	if divisor.secret() {
		f.object(s, "something is divided by the thread number")
	}
	f.useReg(st, s, 0)
	f.useReg(st, s, 2)
	st.flags = value{}
	st.regs[0], st.regs[2] = value{}, value{}
	if divisor.kind == threads {
		st.regs[0], st.regs[2] = value{kind: quotient, id: s.pc}, value{kind: rest, id: s.pc}
	}
}

// compare executes a CMP or TEST.
func (f *flow) compare(st *state, s *step) {
	a, b := f.get(st, s, 0), f.get(st, s, 1)
	st.flags = value{}
	_, constant := s.Args[1].(x86asm.Imm)
	switch {
	case s.Op == x86asm.CMP && a.kind == thread && b.kind == rest:
		st.flags = value{kind: less, id: b.id}
	case s.Op == x86asm.CMP && a.kind == rest && b.kind == thread:
		st.flags = value{kind: less, id: a.id, off: 1}
	case !a.secret() && !b.secret():
		return
	case constant || s.Op == x86asm.TEST || a.kind == zero || b.kind == zero:
		f.object(s, whyConstant)
		return
	default:
		f.object(s, whyCompared)
		return
	}
	if f.judging {
		f.compared[st.flags.id] = s.pc
	}
}

// stackOp executes PUSH, POP and LEAVE.
func (f *flow) stackOp(st *state, s *step) {
	switch s.Op {
	case x86asm.PUSH:
		v := f.get(st, s, 0)
		if v.secret() {
			f.object(s, whyPushed)
		}
		st.regs[rsp].off -= 8
		st.store(top(st), held{v, 8}, true)
		return
	case x86asm.LEAVE:
		st.regs[rsp] = st.regs[5]
		st.regs[5] = st.load(top(st), 8)
	case x86asm.POP:
		f.set(st, s, 0, st.load(top(st), 8))
	}
	st.regs[rsp].off += 8
}

// top is the slot that the stack pointer points to.
func top(st *state) slot { return slot{st.regs[rsp].id, st.regs[rsp].off} }

// exchange executes an XCHG of registers; one with memory is another thread's
// business, and generic.
func (f *flow) exchange(st *state, s *step) {
	a, sizeA, ok := regOf(s.Args[0])
	b, _, okB := regOf(s.Args[1])
	if !ok || !okB || sizeA < 4 {
		f.other(st, s)
		return
	}
	st.regs[a], st.regs[b] = st.regs[b], st.regs[a]
}

// other executes an instruction of which only the operands are known: whatever it
// reads must not be the thread number, whatever it writes is unknown.
func (f *flow) other(st *state, s *step) {
	name := s.Op.String()
	cmov := strings.HasPrefix(name, "CMOV")
	switch {
	case cmov:
		f.choose(st, s)
		return
	case strings.HasPrefix(name, "SET"):
		v := value{}
		if f.tells(st, s) {
			v = value{kind: less, id: st.flags.id}
		}
		f.set(st, s, 0, v)
		return
	}
	first := 0
	if writesOnly(name) {
		first = 1
	}
	f.readArgs(st, s, first)
	for _, r := range implicit(name) {
		f.useReg(st, s, r)
		st.regs[r] = value{}
	}
	if setsFlags(name) {
		st.flags = value{}
	}
	f.set(st, s, 0, value{})
	if name == "MULX" || name == "XADD" || name == "XCHG" { // two results
		f.set(st, s, 1, value{})
	}
}

// choose executes a CMOVcc.
func (f *flow) choose(st *state, s *step) {
	a, b := f.get(st, s, 0), f.get(st, s, 1)
	v := join(a, b)
	if f.tells(st, s) && v.kind != quotient && v.kind != rest && v.kind != chunk {
		f.object(s, "more than the bounds of a loop depends on the comparison of the thread number with a remainder")
	}
	f.set(st, s, 0, v)
}

// implicit returns the registers that an instruction reads or writes without
// naming them.
func implicit(name string) []int {
	switch {
	case strings.HasPrefix(name, "STOS"), strings.HasPrefix(name, "LODS"), strings.HasPrefix(name, "SCAS"),
		name == "MOVSB", name == "MOVSW", name == "MOVSD", name == "MOVSQ", strings.HasPrefix(name, "CMPS") && len(name) == 5:
		return []int{0, 1, 6, 7}
	case strings.HasPrefix(name, "CMPXCHG"):
		if name != "CMPXCHG" {
			return []int{0, 1, 2, 3}
		}
		return []int{0}
	case name == "MULX":
		return []int{2}
	case name == "CPUID", strings.HasPrefix(name, "RDTSC"), name == "XGETBV", name == "SYSCALL", name == "RDPMC":
		return []int{0, 1, 2, 3}
	case name == "CBW", name == "CWDE", name == "CWD", name == "LAHF", name == "SAHF", name == "XLATB":
		return []int{0, 2}
	case name == "LOOP", name == "LOOPE", name == "LOOPNE", name == "JRCXZ", name == "JECXZ":
		return []int{1}
	}
	return nil
}

// writesOnly reports whether an instruction does not read its first operand.
// Those that are not listed are taken to read it.
func writesOnly(name string) bool {
	for _, prefix := range []string{"MOV", "VMOV", "CVT", "VCVT", "PEXTR", "VPEXTR", "VEXTRACT", "PMOVMSK", "VPMOVMSK", "KMOV"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "POPCNT", "LZCNT", "TZCNT", "RORX", "SARX", "SHLX", "SHRX", "MULX", "PDEP", "PEXT", "ANDN", "BEXTR",
		"BLSR", "BLSI", "BLSMSK", "BZHI", "FST", "FSTP", "FIST", "FISTP", "FISTTP":
		return true
	}
	return false
}

// setsFlags reports whether an instruction leaves none of the flags of the last
// comparison. Those that are not listed are taken to keep them.
func setsFlags(name string) bool {
	switch strings.TrimPrefix(name, "V") {
	case "OR", "NEG", "COMISD", "COMISS", "UCOMISD", "UCOMISS", "PTEST", "CMPXCHG", "XADD", "POPCNT", "LZCNT",
		"TZCNT", "ANDN", "BLSR", "BLSI", "BLSMSK", "BZHI", "BEXTR":
		return true
	}
	return false
}
