package sample

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"

	"numaopt/internal/perfdata"
	"numaopt/internal/units"
)

var (
	deviceName = regexp.MustCompile(`^/(dev/zero|anon_hugepage|memfd:|SYSV)`)
	storeName  = regexp.MustCompile(`(?i)stores?\b|st_|:S`)
	auxName    = regexp.MustCompile(`(?i)(loads|latency)-aux|load-latency-aux|dummy`)
)

// mappingName is how a person recognises a mapping without a file.
func mappingName(m *perfdata.Mmap, bytes uint64, n int) string {
	switch {
	case isFile(m.Name):
		return "mapping of " + filepath.Base(m.Name)
	case m.Name == anonymous || m.Name == "":
		return fmt.Sprintf("anonymous mapping #%d (%s)", n, units.Bytes(bytes))
	}
	return m.Name
}

// segments are the loaded segments of files, read once.
var segments sync.Map // path → []elf.ProgHeader

func loaded(path string) []elf.ProgHeader {
	if have, ok := segments.Load(path); ok {
		return have.([]elf.ProgHeader)
	}
	var out []elf.ProgHeader
	if e, err := elf.Open(path); err == nil {
		for _, p := range e.Progs {
			if p.Type == elf.PT_LOAD {
				out = append(out, p.ProgHeader)
			}
		}
		e.Close()
	}
	segments.Store(path, out)
	return out
}

// loadBias is what a file's addresses are off by where the bytes from offset on are
// mapped at addr. Without the file it is taken to be linked as most are.
func loadBias(path string, addr, offset uint64) uint64 {
	for _, p := range loaded(path) {
		if offset >= p.Off&^(units.PageSize-1) && offset < p.Off+p.Filesz {
			return addr - offset + p.Off - p.Vaddr
		}
	}
	return addr - offset
}

// bssOf is how much memory without a file may follow a module's last segment from
// addr on; 0 where the file is not there.
func bssOf(path string, base, addr uint64) uint64 {
	for _, p := range loaded(path) {
		end := (base + p.Vaddr + p.Memsz + units.PageSize - 1) &^ (units.PageSize - 1)
		if p.Memsz > p.Filesz && addr >= base+p.Vaddr && addr < end {
			return end - addr
		}
	}
	return 0
}
