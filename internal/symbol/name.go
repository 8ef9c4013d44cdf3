package symbol

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"numaopt/internal/ident"
)

// Demangle returns the name that a person knows an ELF symbol by, without
// parameters: C++ and Rust demangled, `__mod_MOD_sub` of gfortran as `mod::sub`,
// suffixes of clones such as `.constprop.0` and of outlined loops dropped.
func Demangle(symbol string) string {
	if m := gccLoop.FindStringSubmatch(symbol); m != nil {
		symbol = m[1]
	} else if m := namedLoop.FindStringSubmatch(symbol); m != nil {
		symbol = m[1]
	}
	if strings.HasPrefix(symbol, "_Z") || strings.HasPrefix(symbol, "_R") {
		return demangle.Filter(symbol, demangle.NoParams, demangle.NoClones)
	}
	symbol = cloneSuffix.ReplaceAllString(symbol, "")
	if m := fortranModule.FindStringSubmatch(symbol); m != nil {
		return m[1] + "::" + m[2]
	}
	return symbol
}

var (
	cloneSuffix   = regexp.MustCompile(`(\.(constprop|isra|part|cold|lto_priv|localalias|llvm)(\.\d+)*)+$`)
	fortranModule = regexp.MustCompile(`^__([a-z][a-z0-9_]*)_MOD_([a-z0-9_]+)$`)
)

// NameStack returns how a person recognises a call stack, innermost frame first:
// by its first place that is neither in a library of a language nor in a wrapper
// of an allocator, else by its innermost frame.
func NameStack(frames []ident.Code, modules []ident.Module) string {
	for _, f := range frames {
		if f.Module >= 0 && f.Module < len(modules) && systemLibrary.MatchString(filepath.Base(modules[f.Module].Path)) {
			continue
		}
		if len(f.Inlined) == 0 {
			if !wrapper.MatchString(Demangle(f.Symbol)) {
				return Name(f, modules)
			}
			continue
		}
		for i, l := range f.Inlined {
			if !l.System() && !strings.HasPrefix(l.Function, "operator new") && !wrapper.MatchString(l.Function) {
				f.Inlined = f.Inlined[i:]
				return Name(f, modules)
			}
		}
	}
	if len(frames) == 0 {
		return "?"
	}
	return Name(frames[0], modules)
}

var (
	systemLibrary = regexp.MustCompile(`^(lib(c|m|stdc\+\+|c\+\+|c\+\+abi|gomp|omp|iomp5|gfortran|gcc_s|pthread|numaopt|quadmath)[-.]|ld-linux)`)
	// wrapper matches functions that programs put around malloc.
	wrapper = regexp.MustCompile(`(?i)^_*(x|my|safe|ck|checked|try|do)?_?(malloc|calloc|realloc|memalign|aligned_alloc|alloc|valloc|posix_memalign)$`)
)

// Name returns how a person recognises a code location: `grid.c:42 (init)`,
// else `app+0x1234 (init)`, else `app+0x1234`. modules are those that
// code.Module counts in.
func Name(code ident.Code, modules []ident.Module) string {
	if len(code.Inlined) > 0 && code.Inlined[0].File != "" {
		l := code.Inlined[0]
		s := filepath.Base(l.File)
		if l.Line > 0 {
			s = fmt.Sprintf("%s:%d", s, l.Line)
		}
		if l.Function != "" {
			s += " (" + l.Function + ")"
		}
		return s
	}
	name := "?"
	if code.Module >= 0 && code.Module < len(modules) {
		name = filepath.Base(modules[code.Module].Path)
	}
	name = fmt.Sprintf("%s+%#x", name, code.Offset)
	if code.Symbol != "" {
		name += " (" + Demangle(code.Symbol) + ")"
	}
	return name
}
