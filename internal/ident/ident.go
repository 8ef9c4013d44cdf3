// Package ident holds the names that survive a run: addresses, thread ids and
// CPU numbers die with the process, code locations, symbols and ranks do not.
// Profiles carry them, plans speak nothing else, and launch alone turns them
// back into addresses.
package ident

import (
	"path"
	"strings"
)

// Module is an ELF file that was mapped into the program.
type Module struct {
	// Path is the absolute path at the time of the run.
	Path string `json:"path"`
	// BuildID is the GNU build id in lower-case hex; where the linker wrote none,
	// ContentPrefix and a hash of the code. Empty is not known.
	BuildID string `json:"build_id,omitempty"`
}

// ContentPrefix begins the BuildID of a file that carries none: it can be found
// by reading the file, but not in a running program.
const ContentPrefix = "content:"

// Location is a place in source code; the zero value is "not known".
type Location struct {
	Function string `json:"function,omitempty"` // demangled
	File     string `json:"file,omitempty"`     // as in the debug information, cleaned
	Line     int    `json:"line,omitempty"`     // from 1; 0 is not known
	// FunctionLine is the line of the function's own declaration, so that
	// Line-FunctionLine survives edits above the function; 0 is not known.
	FunctionLine int `json:"function_line,omitempty"`
}

// System reports whether a location belongs to the library of a language: its
// code is in every program, and edited by nobody.
func (l Location) System() bool {
	return strings.HasPrefix(l.File, "/usr/include/") || strings.HasPrefix(l.File, "/usr/lib/") ||
		strings.HasPrefix(l.File, "/usr/local/include/c++/") ||
		strings.HasPrefix(l.Function, "std::") || strings.HasPrefix(l.Function, "__gnu_cxx::")
}

// Fortran reports whether a source file is in Fortran, where upper and lower case
// mean the same.
func Fortran(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08", ".f18", ".fpp":
		return true
	}
	return false
}

// Code is an instruction address that survives a run: a module and an offset
// from its load base (an ELF virtual address), and what the debug information
// says of it.
type Code struct {
	Module int    `json:"module"` // index in the profile's modules, -1 is none
	Offset uint64 `json:"offset"` // ELF virtual address
	// Symbol is the ELF symbol that covers Offset, not demangled; may be empty.
	Symbol string `json:"symbol,omitempty"`
	// Inlined holds the source locations of Offset, innermost inlined function
	// first, the function that contains the instruction last; may be empty.
	Inlined []Location `json:"inlined,omitempty"`
}
