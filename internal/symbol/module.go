package symbol

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"

	"numaopt/internal/ident"
)

// Module is one ELF file. Its methods may be called by several goroutines; what
// they return is not to be changed.
type Module struct {
	path      string
	buildID   string // GNU build id, empty where there is none
	content   string // stands for it then, see contentID
	pie       bool
	sections  []section
	functions []Function
	named     map[string][]uint64 // addresses of the functions' symbols, aliases included
	objects   []object
	files     map[string]string // symbol of an object → file of its STT_FILE

	mu    sync.Mutex
	debug *debugInfo // nil until first needed
}

// section is an allocated section.
type section struct {
	name   string
	lo, hi uint64
	flags  elf.SectionFlag
	kind   elf.SectionType
}

// Open reads the headers and the symbols of the file at path; its DWARF is read
// when it is first needed.
func Open(path string) (m *Module, err error) {
	defer guard(&err, path)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m = &Module{path: path, buildID: buildID(e), pie: e.Type == elf.ET_DYN}
	if m.buildID == "" {
		m.content = contentID(e)
	}
	for _, s := range e.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 && s.Addr+s.Size > s.Addr {
			m.sections = append(m.sections, section{s.Name, s.Addr, s.Addr + s.Size, s.Flags, s.Type})
		}
	}
	sort.Slice(m.sections, func(i, j int) bool { return m.sections[i].lo < m.sections[j].lo })
	symbols := readSymbols(e)
	if debug, closer := openDebugFile(path, e, m.buildID); debug != nil {
		symbols = append(symbols, readSymbols(debug)...)
		closer()
	}
	m.functions, m.named = functions(symbols, m.sections)
	m.objects, m.files = objects(symbols, m.sections)
	return m, nil
}

// Path returns the path that the module was opened by.
func (m *Module) Path() string { return m.path }

// BuildID returns what tells builds of a file apart: the GNU build id in
// lower-case hex, or the content's, which begins with ident.ContentPrefix.
func (m *Module) BuildID() string {
	if m.buildID == "" {
		return m.content
	}
	return m.buildID
}

// HasDebug reports whether there is DWARF for the module, here or in a debug file.
func (m *Module) HasDebug() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.load().data != nil
}

// guard turns a panic of the readers of ELF and DWARF, which are not made for
// hostile input, into an error.
func guard(err *error, path string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: broken ELF or DWARF: %v", path, p)
	}
}

// buildID returns the GNU build id of e, empty where there is none.
func buildID(e *elf.File) string {
	for _, s := range e.Sections {
		if s.Type != elf.SHT_NOTE || s.Size > 1<<20 {
			continue
		}
		if data, err := s.Data(); err == nil {
			if id := noteBuildID(data, e); id != "" {
				return id
			}
		}
	}
	for _, p := range e.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > 1<<20 {
			continue
		}
		data := make([]byte, p.Filesz)
		if _, err := p.ReadAt(data, 0); err == nil {
			if id := noteBuildID(data, e); id != "" {
				return id
			}
		}
	}
	return ""
}

// contentID stands for the build id of a file without one: a hash of its code and
// of where that is linked to, which are what return addresses depend on. It is
// empty where there is no code or it cannot be read.
func contentID(e *elf.File) string {
	const bytes = 20 // as a build id has
	h, code := sha256.New(), false
	for _, p := range e.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 {
			continue
		}
		fmt.Fprintf(h, "%x %x\n", p.Vaddr, p.Filesz)
		if _, err := io.Copy(h, p.Open()); err != nil {
			return ""
		}
		code = true
	}
	if !code {
		return ""
	}
	return ident.ContentPrefix + hex.EncodeToString(h.Sum(nil)[:bytes])
}

// noteBuildID finds the build id in the notes of data.
func noteBuildID(data []byte, e *elf.File) string {
	const ntGNUBuildID = 3
	for len(data) >= 12 {
		name, desc := e.ByteOrder.Uint32(data), e.ByteOrder.Uint32(data[4:])
		kind := e.ByteOrder.Uint32(data[8:])
		nameEnd := 12 + (uint64(name)+3)&^3
		descEnd := nameEnd + (uint64(desc)+3)&^3
		if descEnd > uint64(len(data)) || nameEnd+uint64(desc) > uint64(len(data)) {
			return ""
		}
		if kind == ntGNUBuildID && string(data[12:12+name]) == "GNU\x00" {
			return hex.EncodeToString(data[nameEnd : nameEnd+uint64(desc)])
		}
		data = data[descEnd:]
	}
	return ""
}

// sectionAt returns the section that holds vaddr, or nil.
func sectionAt(sections []section, vaddr uint64) *section {
	i := sort.Search(len(sections), func(i int) bool { return sections[i].hi > vaddr })
	for ; i < len(sections) && sections[i].lo <= vaddr; i++ {
		// .tbss has addresses of its own that overlap those of what follows it.
		if sections[i].flags&elf.SHF_TLS == 0 || sections[i].kind != elf.SHT_NOBITS {
			return &sections[i]
		}
	}
	return nil
}
