// Package arena reads what a process under the emulator's plugin leaves behind:
// the shared memory that runtime-c/plugin/arena.h describes.
//
// # Input
//
// A descriptor (or any io.ReaderAt) of the arena, of a process that may still
// run or have been killed at any moment.
//
// # Output
//
// The header, the sections as slices of plain structs, and the counters one by
// one: they are the bulk and are never all in memory.
//
// # Limits
//
// What a running process is adding while it is read may be missing or, in its
// last entries, zero.
package arena

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Section numbers a section of the arena (enum nmo_section_id).
type Section int

// The sections.
const (
	Text Section = iota
	Notes
	Modules
	Funcs
	Loops
	Starts
	Threads
	Sites
	Frames
	Objects
	Pages
	Blocks
	Small
	Uses
	Intervals
	L1
	sections
)

var sectionName = [sections]string{"text", "notes", "modules", "functions", "loops", "starts", "threads", "sites", "frames", "objects", "pages", "blocks", "small", "uses", "intervals", "l1"}

func (s Section) String() string { return sectionName[s] }

// Version is the format version that this package reads.
const Version = 4

const (
	magic       = "numaopt-arena\n\x00\x00"
	sectionHead = 96 // offset of the section table in the header
	headerBytes = sectionHead + int(sections)*32
)

// Flags of a Header.
const (
	Hello  = 1 << iota // the runtime spoke
	Exited             // exit_group was called; ExitStatus is valid
	Forked             // a forked child; the counts are its own
	Execed             // the process became another program
	Full               // a section ran out of room
)

// Header says whose arena it is.
type Header struct {
	Version    uint32
	Flags      uint32
	PID, PPID  int
	ExitStatus int
	Period     uint32
	CPUs       uint32
	Nodes      uint32
	StartNanos uint64 // since the epoch
	Lost       uint64 // accesses seen and not counted

	command, program uint32
}

// FormatError says where an arena is not what it should be.
type FormatError struct {
	Part string
	Err  error
}

func (e *FormatError) Error() string { return fmt.Sprintf("arena: %s: %v", e.Part, e.Err) }
func (e *FormatError) Unwrap() error { return e.Err }

func wrong(part, format string, args ...any) error {
	return &FormatError{part, fmt.Errorf(format, args...)}
}

type section struct{ offset, stride, cap, count uint64 }

// Arena is an opened arena. It does not own its reader.
type Arena struct {
	Header
	r       io.ReaderAt
	section [sections]section
}

// entry is the smallest stride of each section's entries.
var entry = [sections]uint64{1, 8, 32, 16, 64, 16, 16, 8, 8, 32, 48, 64, 16, 48, 24, 8}

// Open reads the header of an arena of size bytes.
func Open(r io.ReaderAt, size int64) (*Arena, error) {
	var head [headerBytes]byte
	if size < int64(len(head)) {
		return nil, wrong("header", "%d bytes, want at least %d", size, len(head))
	}
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, &FormatError{"header", err}
	}
	if string(head[:16]) != magic {
		return nil, wrong("header", "not an arena")
	}
	le := binary.LittleEndian
	u32 := func(at int) uint32 { return le.Uint32(head[at:]) }
	if v := u32(16); v != Version {
		return nil, wrong("header", "version %d, this numaopt reads %d: rebuild the plugin", v, Version)
	}
	a := &Arena{r: r, Header: Header{
		Version: u32(16), Flags: u32(20), PID: int(u32(24)), PPID: int(u32(28)),
		ExitStatus: int(int32(u32(32))), Period: u32(36), CPUs: u32(40), Nodes: u32(44),
		command: u32(48), program: u32(52),
		StartNanos: le.Uint64(head[56:]), Lost: le.Uint64(head[64:]),
	}}
	for i := range a.section {
		at := sectionHead + i*32
		s := section{le.Uint64(head[at:]), le.Uint64(head[at+8:]), le.Uint64(head[at+16:]), le.Uint64(head[at+24:])}
		if err := s.check(Section(i), uint64(size)); err != nil {
			return nil, err
		}
		a.section[i] = s
	}
	if s := a.section[Intervals]; s.stride < entry[Intervals]+8*(uint64(a.Nodes)+1) {
		return nil, wrong(Intervals.String(), "entries of %d bytes for %d nodes", s.stride, a.Nodes)
	}
	return a, nil
}

func (s section) check(id Section, size uint64) error {
	if s.stride < entry[id] || s.stride > size {
		return wrong(id.String(), "entries of %d bytes, want %d or more", s.stride, entry[id])
	}
	if s.offset > size || s.count > (size-s.offset)/s.stride {
		return wrong(id.String(), "%d entries of %d bytes at %d reach past the end", s.count, s.stride, s.offset)
	}
	return nil
}

// each calls do for every entry from number from on, reading a piece at a time.
func (a *Arena) each(id Section, from uint64, do func(i int, b []byte)) error {
	s := a.section[id]
	per := max(1, (1<<20)/s.stride)
	buf := make([]byte, min(per, s.count)*s.stride)
	for i := from; i < s.count; i += per {
		n := min(per, s.count-i)
		b := buf[:n*s.stride]
		if _, err := a.r.ReadAt(b, int64(s.offset+i*s.stride)); err != nil {
			return &FormatError{id.String(), err}
		}
		for k := uint64(0); k < n; k++ {
			do(int(i+k), b[k*s.stride:(k+1)*s.stride])
		}
	}
	return nil
}

// read returns all entries of a section that does not hold the bulk.
func read[T any](a *Arena, id Section, parse func(b []byte) T) ([]T, error) {
	var out []T
	err := a.each(id, 0, func(_ int, b []byte) { out = append(out, parse(b)) })
	return out, err
}

// texts is the text section.
type texts []byte

func (t texts) at(offset uint32) string {
	if offset == 0 || int64(offset) >= int64(len(t)) {
		return ""
	}
	b := t[offset:]
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	return string(b)
}

func (a *Arena) texts() (texts, error) {
	s := a.section[Text]
	b := make([]byte, s.count)
	if _, err := a.r.ReadAt(b, int64(s.offset)); err != nil {
		return nil, &FormatError{Text.String(), err}
	}
	return b, nil
}

// Command is argv of the process and the path of its program.
func (a *Arena) Command() (argv []string, program string, err error) {
	t, err := a.texts()
	if err != nil {
		return nil, "", err
	}
	program = t.at(a.program)
	if at := uint64(a.command); at != 0 && at+4 <= uint64(len(t)) {
		n := binary.LittleEndian.Uint32(t[at:])
		rest := t[at+4:]
		for ; n > 0 && len(rest) > 0; n-- {
			word, after, found := bytes.Cut(rest, []byte{0})
			argv = append(argv, string(word))
			if !found {
				break
			}
			rest = after
		}
	}
	return argv, program, nil
}
