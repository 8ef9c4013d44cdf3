package symbol

import (
	"path/filepath"
	"regexp"
	"strings"

	"numaopt/internal/units"
)

// runtimeModule matches modules whose variables are nobody's data: they are part
// of the image, and reading libc's debug information takes longer than many programs.
var runtimeModule = regexp.MustCompile(`^(libc|libm|libdl|librt|libpthread|ld-linux-x86-64|libgcc_s|libgomp|libomp|libiomp5|libquadmath|libstdc\+\+|libc\+\+|libc\+\+abi|libgfortran|libnumaopt|libresolv|libnss_[a-z]+)[.-]`)

// Runtime reports whether a module is one that runs programs, not one of a program.
func Runtime(path string) bool { return runtimeModule.MatchString(filepath.Base(path)) }

// Globals returns the variables of the module at path that are objects of their own:
// those of a page or more that the program writes. There are none in modules that run
// programs, and in those that cannot be read.
func (t *Table) Globals(path string) []Variable {
	if Runtime(path) {
		return nil
	}
	m, err := t.Open(path)
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if list, ok := t.globals[path]; ok {
		return list
	}
	var list []Variable
	for _, v := range m.Variables() {
		if v.Size >= units.PageSize && writable(v.Section) {
			list = append(list, v)
		}
	}
	if t.globals == nil {
		t.globals = make(map[string][]Variable)
	}
	t.globals[path] = list
	return list
}

// writable reports whether a program's variables lie in the section; constants
// are part of the image.
func writable(section string) bool {
	return strings.HasPrefix(section, ".bss") || strings.HasPrefix(section, ".lbss") || strings.HasPrefix(section, ".ldata") ||
		strings.HasPrefix(section, ".data") && !strings.HasPrefix(section, ".data.rel.ro")
}
