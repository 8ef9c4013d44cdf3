package bounds

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"
)

// Note: x86asm v0.32 gives some AVX instructions a wrong length (those with an
// immediate byte after a memory operand, for one), so they are taken apart here,
// as far as general registers, memory and flags are concerned: Intel SDM vol. 2,
// §2.3 (VEX) and §2.7 (EVEX).

// vector is an instruction with a VEX or EVEX prefix.
type vector struct {
	evex          bool
	table, prefix byte // opcode map 1 (0F), 2 (0F38), 3 (0F3A), 5, 6; prefix 0, 1 (66), 2 (F3), 3 (F2)
	op            byte
	r, x, b, vvvv byte // register bits beyond ModRM's, and the third register
	w             bool
	length        int // up to the opcode, then of all
}

// isVector reports whether an instruction has VEX or EVEX: in 64-bit mode these
// bytes are nothing else.
func isVector(code []byte) bool {
	code = code[segments(code):]
	return len(code) > 3 && (code[0] == 0xc4 || code[0] == 0xc5 || code[0] == 0x62)
}

// segments counts the prefixes for segment and address size.
func segments(code []byte) (n int) {
	for n < len(code) && (code[n] == 0x64 || code[n] == 0x65 || code[n] == 0x67 || code[n] == 0x2e || code[n] == 0x3e) {
		n++
	}
	return n
}

// decodeVector decodes an instruction of which isVector holds. The result's Op is
// not the instruction's own but one that treats operands and flags alike; vague
// says that the offset of its memory operand is a lower bound.
func decodeVector(code []byte) (in x86asm.Inst, vague bool, err error) {
	before := code[:segments(code)]
	code = code[len(before):]
	v := prefixes(code)
	if len(code) < v.length+2 {
		return in, false, x86asm.ErrTruncated
	}
	v.op = code[v.length]
	v.length++
	if v.table == 1 && v.op == 0x77 { // vzeroupper, vzeroall
		return x86asm.Inst{Op: x86asm.EMMS, Len: len(before) + v.length}, false, nil
	}
	modrm := code[v.length]
	v.length++
	var rm x86asm.Arg
	if modrm>>6 == 3 {
		rm = v.gpr(v.b<<3 | modrm&7)
	} else if rm, vague, err = v.memory(code, modrm); err != nil {
		return in, false, err
	}
	if v.immediate() {
		v.length++
	}
	if v.length > len(code) {
		return in, false, x86asm.ErrTruncated
	}
	if m, ok := rm.(x86asm.Mem); ok && bytes.ContainsAny(before, "\x64\x65") {
		m.Segment = x86asm.FS // or GS: not the stack
		rm = m
	}
	in = v.classify(v.gpr(v.r<<3|modrm>>3&7), rm)
	in.Len = len(before) + v.length
	return in, vague, nil
}

// prefixes reads the prefix; length is its length.
func prefixes(c []byte) vector {
	switch c[0] {
	case 0xc5:
		return vector{table: 1, r: ^c[1] >> 7, vvvv: ^c[1] >> 3 & 15, prefix: c[1] & 3, length: 2}
	case 0xc4:
		return vector{table: c[1] & 31, r: ^c[1] >> 7, x: ^c[1] >> 6 & 1, b: ^c[1] >> 5 & 1,
			w: c[2]>>7 == 1, vvvv: ^c[2] >> 3 & 15, prefix: c[2] & 3, length: 3}
	}
	return vector{evex: true, table: c[1] & 7, r: ^c[1] >> 7, x: ^c[1] >> 6 & 1, b: ^c[1] >> 5 & 1,
		w: c[2]>>7 == 1, vvvv: ^c[2] >> 3 & 15, prefix: c[2] & 3, length: 4}
}

// gpr is the general register n.
func (v *vector) gpr(n byte) x86asm.Reg {
	if v.w {
		return x86asm.RAX + x86asm.Reg(n&15)
	}
	return x86asm.EAX + x86asm.Reg(n&15)
}

// memory reads a memory operand. EVEX scales an offset of one byte by a factor
// from 1 to 64 (§2.7.5); the lowest address that may be meant is returned then.
func (v *vector) memory(code []byte, modrm byte) (m x86asm.Mem, vague bool, err error) {
	mod, base := modrm>>6, modrm&7
	if len(code) == v.length {
		return m, false, x86asm.ErrTruncated
	}
	if base == 4 {
		sib := code[v.length]
		v.length++
		base = sib & 7
		if index := v.x<<3 | sib>>3&7; index != 4 && !v.gathers() {
			m.Index, m.Scale = x86asm.RAX+x86asm.Reg(index), 1<<(sib>>6)
		}
	} else if mod == 0 && base == 5 {
		m.Base = x86asm.RIP
	}
	if m.Base == 0 && (mod != 0 || base != 5) {
		m.Base = x86asm.RAX + x86asm.Reg(v.b<<3|base)
	}
	rest := code[v.length:]
	switch {
	case mod == 1 && len(rest) >= 1:
		m.Disp = int64(int8(rest[0]))
		if v.evex {
			vague, m.Disp = true, min(m.Disp, m.Disp*64)
		}
		v.length++
	case (mod == 2 || mod == 0 && base == 5) && len(rest) >= 4:
		m.Disp = int64(int32(binary.LittleEndian.Uint32(rest)))
		v.length += 4
	case mod != 0 || base == 5:
		return m, false, x86asm.ErrTruncated
	}
	return m, vague || v.gathers(), nil
}

// gathers reports whether the index of the memory operand is a vector.
func (v *vector) gathers() bool {
	return v.table == 2 && (v.op >= 0x90 && v.op <= 0x93 || v.op >= 0xa0 && v.op <= 0xa3 || v.op == 0xc6 || v.op == 0xc7)
}

// immediate reports whether a byte follows the operands.
func (v *vector) immediate() bool {
	return v.table == 3 || v.table == 1 && (v.op >= 0x70 && v.op <= 0x73 || v.op == 0xc2 || v.op >= 0xc4 && v.op <= 0xc6)
}

// classify says what becomes of the register and of the register or memory
// operand. Registers that are not general ones are left out.
func (v *vector) classify(reg x86asm.Reg, rm x86asm.Arg) x86asm.Inst {
	_, isMem := rm.(x86asm.Mem)
	switch at := uint16(v.table)<<8 | uint16(v.op); at {
	case 0x2f2, 0x2f3, 0x2f5, 0x2f6, 0x2f7, 0x3f0: // BMI1 and BMI2: all registers are general
		return v.bits(reg, rm)
	case 0x12c, 0x12d, 0x178, 0x179, 0x150, 0x1d7, 0x1c5, 0x52c, 0x52d: // to the register
		if isMem {
			return x86asm.Inst{Op: x86asm.CVTTSD2SI, Args: x86asm.Args{reg, rm}}
		}
		return x86asm.Inst{Op: x86asm.CVTTSD2SI, Args: x86asm.Args{reg}}
	case 0x1f7: // which writes to where RDI points
		return x86asm.Inst{Op: x86asm.MASKMOVDQU}
	case 0x193:
		return x86asm.Inst{Op: x86asm.CVTTSD2SI, Args: x86asm.Args{reg}}
	case 0x12a, 0x16e, 0x17a, 0x17b, 0x1c4, 0x192, 0x27a, 0x27b, 0x27c, 0x320, 0x322, 0x52a, 0x57b, 0x56e: // from rm
		return x86asm.Inst{Op: x86asm.PSHUFB, Args: x86asm.Args{nil, rm}}
	case 0x314, 0x315, 0x316, 0x317, 0x17e, 0x57e: // to rm
		if at == 0x17e && v.prefix == 2 {
			break // vmovq from memory or a vector
		}
		return x86asm.Inst{Op: x86asm.PEXTRD, Args: x86asm.Args{rm}}
	}
	op := x86asm.PSHUFB
	if v.comparesFlags() {
		op = x86asm.UCOMISD
	}
	switch {
	case !isMem:
		rm = nil
	case v.stores():
		return x86asm.Inst{Op: x86asm.MOVUPS, Args: x86asm.Args{rm}}
	}
	return x86asm.Inst{Op: op, Args: x86asm.Args{nil, rm}}
}

// bits is an instruction of BMI1 or BMI2.
func (v *vector) bits(reg x86asm.Reg, rm x86asm.Arg) x86asm.Inst {
	third := v.gpr(v.vvvv)
	switch {
	case v.table == 3: // rorx
		return x86asm.Inst{Op: x86asm.RORX, Args: x86asm.Args{reg, rm}}
	case v.op == 0xf3: // blsr, blsi, blsmsk
		return x86asm.Inst{Op: x86asm.BLSR, Args: x86asm.Args{third, rm}}
	case v.op == 0xf6: // mulx
		return x86asm.Inst{Op: x86asm.MULX, Args: x86asm.Args{reg, third, rm}}
	case v.op == 0xf2 || v.prefix == 0: // andn, bzhi, bextr
		return x86asm.Inst{Op: x86asm.ANDN, Args: x86asm.Args{reg, third, rm}}
	}
	return x86asm.Inst{Op: x86asm.SHLX, Args: x86asm.Args{reg, third, rm}} // shifts, pdep, pext
}

// stores reports whether a memory operand is written.
func (v *vector) stores() bool {
	switch uint16(v.table)<<8 | uint16(v.op) {
	case 0x111, 0x113, 0x117, 0x129, 0x12b, 0x17f, 0x191, 0x1d6, 0x1e7, 0x511, 0x22e, 0x22f, 0x28e,
		0x2a0, 0x2a1, 0x2a2, 0x2a3, 0x28a, 0x28b, 0x263, 0x319, 0x339, 0x31b, 0x33b, 0x31d:
		return true
	}
	narrows := v.table == 2 && v.prefix == 2 && v.op>>4 >= 1 && v.op>>4 <= 3 && v.op&15 <= 5 // vpmovqd and its like
	return narrows
}

// comparesFlags reports whether the flags are set.
func (v *vector) comparesFlags() bool {
	switch uint16(v.table)<<8 | uint16(v.op) {
	case 0x12e, 0x12f, 0x52e, 0x52f, 0x20e, 0x20f, 0x217, 0x198, 0x199:
		return true
	}
	return false
}
