// Package symbol reads ELF files and their DWARF: what the code at an address
// is called, which globals a file has and where they lie, which functions are
// bodies of parallel loops, and, the other way round, which addresses a place
// in the source has.
//
// # Input
//
// ELF files for x86-64 from gcc, gfortran and clang, with DWARF 4 or 5, in the
// file, in the file of its .gnu_debuglink or below /usr/lib/debug/.build-id.
// All addresses are ELF virtual addresses: offsets from the load base.
//
// # Output
//
// Names as package ident defines them. Without DWARF there are symbols, and
// without symbols there are offsets; neither is an error.
//
// # Limits
//
// Split DWARF is read of version 5, from .dwo files, without variables; that of version
// 4, packages (.dwp) and the alternate debug file of dwz (.gnu_debugaltlink) are not.
package symbol

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
)

// Table opens each module once. The zero value is ready; it may be used by
// several goroutines.
type Table struct {
	mu      sync.Mutex
	modules map[string]opened
	globals map[string][]Variable
}

// opened is the outcome of Open.
type opened struct {
	module *Module
	err    error
}

// Open returns the module at path, the same one for each call with the same
// path; a failure is remembered, too.
func (t *Table) Open(path string) (*Module, error) {
	path = filepath.Clean(path)
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := t.modules[path]; ok {
		return o.module, o.err
	}
	m, err := Open(path)
	if t.modules == nil {
		t.modules = make(map[string]opened)
	}
	t.modules[path] = opened{m, err}
	return m, err
}

// Warnings says of which modules, among those that were asked for names, parts of the
// debug information could not be read: one sentence each, by path.
func (t *Table) Warnings() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, path := range slices.Sorted(maps.Keys(t.modules)) {
		if m := t.modules[path].module; m != nil {
			if why := m.lacking(); why != "" {
				out = append(out, fmt.Sprintf("%s: debug information is not read, and names are coarser: %s", path, why))
			}
		}
	}
	return out
}

func (m *Module) lacking() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.debug == nil {
		return ""
	}
	return m.debug.lacking
}
