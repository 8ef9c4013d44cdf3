package bounds

import "golang.org/x/arch/x86/x86asm"

// regOf returns the number and size of a general register.
func regOf(a x86asm.Arg) (n int, size int64, ok bool) {
	r, isReg := a.(x86asm.Reg)
	if !isReg {
		return 0, 0, false
	}
	n, size, _, ok = number(r)
	return n, size, ok
}

func isReg(a x86asm.Arg) bool { _, _, ok := regOf(a); return ok }

func isRSP(a x86asm.Arg) bool { return a == x86asm.RSP }

// immediate returns a constant operand, else 0.
func immediate(a x86asm.Arg) int64 {
	imm, _ := a.(x86asm.Imm)
	return int64(imm)
}

// regValue is the value of a whole register, as a part of an address.
func (f *flow) regValue(st *state, r x86asm.Reg) value {
	if n, size, ok := regOf(r); ok && size >= 4 {
		return st.regs[n]
	}
	return value{}
}

// addresses objects to memory operands whose address the thread number is in.
func (f *flow) addresses(st *state, s *step) {
	for _, a := range s.Args {
		if m, ok := a.(x86asm.Mem); ok && (f.regValue(st, m.Base).secret() || f.regValue(st, m.Index).secret()) {
			f.object(s, whyIndex)
		}
	}
}

// slotOf returns the stack slot of a memory operand. An indexed access is one to
// an array that begins there.
func (f *flow) slotOf(st *state, s *step, m x86asm.Mem) (slot, bool) {
	base := f.regValue(st, m.Base)
	if base.kind != stack || m.Segment == x86asm.FS || m.Segment == x86asm.GS {
		return slot{}, false
	}
	k := slot{base.id, base.off + m.Disp}
	if m.Index != 0 || s.vague {
		f.take(k)
		return slot{}, false
	}
	return k, true
}

// take notes that the address of a place in a frame is known to more than the
// instructions that name it.
func (f *flow) take(k slot) { f.taken[k] = true }

// get is the value of operand i.
func (f *flow) get(st *state, s *step, i int) value {
	switch a := s.Args[i].(type) {
	case x86asm.Imm:
		if a == 0 {
			return value{kind: zero}
		}
	case x86asm.Reg:
		n, size, ok := regOf(a)
		switch {
		case !ok:
		case size >= 4 || st.regs[n].kind == less && size == 1:
			return st.regs[n]
		case st.regs[n].secret():
			return value{kind: mixed}
		}
	case x86asm.Mem:
		k, ok := f.slotOf(st, s, a)
		if !ok {
			return value{}
		}
		v := st.load(k, accessSize(s))
		if v.secret() && f.judging {
			f.loaded[k] = true
		}
		return v
	}
	return value{}
}

// accessSize is the size of a memory operand in bytes; where it is not known, as
// large as any.
func accessSize(s *step) int64 {
	if s.MemBytes > 0 {
		return int64(s.MemBytes)
	}
	return 64
}

// set writes operand i, which may be absent or no place to write to.
func (f *flow) set(st *state, s *step, i int, v value) {
	switch a := s.Args[i].(type) {
	case x86asm.Reg:
		f.setReg(st, s, a, v)
	case x86asm.Mem:
		f.setMem(st, s, a, v)
	}
}

func (f *flow) setReg(st *state, s *step, r x86asm.Reg, v value) {
	n, size, ok := regOf(r)
	switch {
	case !ok:
	case size < 4 && v.kind != less:
		if v.secret() || st.regs[n].secret() {
			v = value{kind: mixed}
		} else {
			v = value{}
		}
		st.regs[n] = v
	case v.kind == stack && size < 8:
		st.regs[n] = value{}
	case n == rsp && v.kind != stack: // the stack is somewhere new
		st.regs[n] = value{kind: stack, id: s.pc}
	default:
		st.regs[n] = v
		if v.kind == stack && n != rsp && !(n == 5 && s.Op == x86asm.MOV) { // not the frame pointer
			f.take(slot{v.id, v.off})
		}
	}
}

func (f *flow) setMem(st *state, s *step, m x86asm.Mem, v value) {
	k, ok := f.slotOf(st, s, m)
	if !ok {
		if v.secret() {
			f.object(s, whyStored)
		}
		if f.regValue(st, m.Base).kind != stack {
			f.effect(st, s)
		}
		return
	}
	st.store(k, held{v, accessSize(s)}, s.MemBytes > 0)
	if v.secret() && f.judging {
		f.spilled[k] = s.pc
	}
}

// use objects to operand i being the thread number.
func (f *flow) use(st *state, s *step, i int, why string) {
	if s.Args[i] != nil && f.get(st, s, i).secret() {
		f.object(s, why)
	}
}

// useReg objects to register r being the thread number.
func (f *flow) useReg(st *state, s *step, r int) {
	if st.regs[r].secret() {
		f.object(s, notUnderstood(s))
	}
}

// notUnderstood names an instruction; those in place of vector ones have not
// their own name.
func notUnderstood(s *step) string {
	if s.vector {
		return "the thread number is used by a vector instruction, which is not understood"
	}
	return "the thread number is used by " + s.Op.String() + ", which is not understood"
}

// readArgs objects to the operands from first on being the thread number.
func (f *flow) readArgs(st *state, s *step, first int) {
	for i := first; i < len(s.Args); i++ {
		why := notUnderstood(s)
		switch s.Op {
		case x86asm.SHL, x86asm.SHR, x86asm.SAR:
			why = whyScaled
		}
		f.use(st, s, i, why)
	}
}
