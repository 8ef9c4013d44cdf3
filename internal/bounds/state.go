package bounds

import "golang.org/x/arch/x86/x86asm"

// kind is what is known of a value.
type kind uint8

const (
	unknown  kind = iota // anything that does not depend on the thread number but through a chunk
	zero                 // 0
	threads              // T, the result of omp_get_num_threads
	thread               // t, the result of the call in question
	quotient             // n / T of division id, or one more
	rest                 // n % T of division id, or 0
	chunk                // where the thread's chunk begins, and sums with it; id is the division's
	less                 // the outcome of comparing t with the rest of division id
	mixed                // depends on t on some paths, or in part: no use of it is understood
	stack                // address off within the frame id
)

// value is an abstract value.
type value struct {
	kind kind
	id   uint64 // address of the division; frame: address of the instruction that made it, 0 on entry
	off  int64  // stack: offset from the frame's origin
}

// secret reports whether a value tells the thread number.
func (v value) secret() bool { return v.kind == thread || v.kind == less || v.kind == mixed }

// join is the value that is a on one path and b on another.
func join(a, b value) value {
	switch {
	case a == b:
		return a
	case a.secret() || b.secret():
		return value{kind: mixed}
	case a.kind == rest && b.kind == zero:
		return a
	case a.kind == zero && b.kind == rest:
		return b
	}
	return value{}
}

// slot is a place in a frame.
type slot struct {
	frame uint64
	off   int64
}

// held is the value of a slot and its size in bytes.
type held struct {
	value
	size int64
}

// state is what is known before an instruction.
type state struct {
	regs  [16]value     // by hardware number: RAX RCX RDX RBX RSP RBP RSI RDI R8…R15
	slots map[slot]held // others are unknown
	flags value         // less or mixed: the flags tell the thread number
	// arm is the branch on t < rest that was taken last, until the arms meet or
	// the chunk's start has been computed; 0 is none. Bit 0 tells the arms apart.
	arm uint64
}

const rsp = 4

func (s *state) clone() *state {
	c := *s
	c.slots = make(map[slot]held, len(s.slots))
	for k, v := range s.slots {
		c.slots[k] = v
	}
	return &c
}

// merge widens s by what other knows and reports whether that changed it.
func (s *state) merge(other *state) bool {
	changed := false
	set := func(to *value, from value) {
		if v := join(*to, from); v != *to {
			*to, changed = v, true
		}
	}
	for i := range s.regs {
		set(&s.regs[i], other.regs[i])
	}
	set(&s.flags, other.flags)
	if s.arm != other.arm && s.arm != 0 {
		s.arm, changed = 0, true
	}
	for k, h := range s.slots {
		o := other.slots[k]
		v := join(h.value, o.value)
		if v == h.value && (h.size >= o.size || o.kind == unknown) {
			continue
		}
		s.put(k, held{v, max(h.size, o.size)})
		changed = true
	}
	for k, o := range other.slots {
		if _, ok := s.slots[k]; !ok && o.secret() { // others joined with unknown are unknown
			s.slots[k] = held{value{kind: mixed}, o.size}
			changed = true
		}
	}
	return changed
}

// put sets a slot without looking at its neighbours.
func (s *state) put(k slot, h held) {
	if h.kind == unknown {
		delete(s.slots, k)
	} else {
		s.slots[k] = h
	}
}

// store writes a slot and what it overlaps. Where the size is not exact, secrets
// within it may remain.
func (s *state) store(k slot, h held, exact bool) {
	for o, old := range s.slots {
		if o.frame != k.frame || o.off >= k.off+h.size || k.off >= o.off+old.size {
			continue
		}
		if old.secret() && (!exact || o.off < k.off || o.off+old.size > k.off+h.size) {
			s.slots[o] = held{value{kind: mixed}, old.size} // a part of it remains
		} else {
			delete(s.slots, o)
		}
	}
	if exact {
		s.put(k, h)
	}
}

// load reads size bytes of a slot. The low part of a number is as good as the
// whole; anything else that overlaps a secret is mixed.
func (s *state) load(k slot, size int64) value {
	if h, ok := s.slots[k]; ok && size <= h.size && size >= 4 {
		return h.value
	}
	for o, h := range s.slots {
		if h.secret() && o.frame == k.frame && o.off < k.off+size && k.off < o.off+h.size {
			return value{kind: mixed}
		}
	}
	return value{}
}

// holds reports whether any place holds a secret.
func (s *state) holds() bool {
	for _, v := range s.regs {
		if v.secret() {
			return true
		}
	}
	for _, h := range s.slots {
		if h.secret() {
			return true
		}
	}
	return false
}

// number returns the hardware number and the size in bytes of a general register;
// high is set for AH to BH.
func number(r x86asm.Reg) (n int, size int64, high, ok bool) {
	switch {
	case r >= x86asm.AH && r <= x86asm.BH:
		return int(r - x86asm.AH), 1, true, true
	case r >= x86asm.AL && r <= x86asm.BL:
		return int(r - x86asm.AL), 1, false, true
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return int(r-x86asm.SPB) + 4, 1, false, true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return int(r - x86asm.AX), 2, false, true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return int(r - x86asm.EAX), 4, false, true
	case r >= x86asm.RAX && r <= x86asm.R15:
		return int(r - x86asm.RAX), 8, false, true
	}
	return 0, 0, false, false
}
