package ingest

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
)

// wrapper matches functions that hand memory on and say nothing of its use:
// xmalloc, safe_calloc, my_alloc, operator new, mem::allocate.
var wrapper = regexp.MustCompile(`^(.*(_|::|\b))?x?(m|c|re|pm|em|v|p?v)?alloc(ate)?(_?(aligned|or_die|array|at_least))?$|` +
	`^(.*_)?(aligned_alloc|posix_memalign|memalign|aligned_malloc|malloc_aligned|mmap|mremap|strdup)$|^operator new|^_Zn[wa]`)

// library matches files and modules that belong to the system: an allocation in
// them is named by who called them.
var (
	systemFile   = regexp.MustCompile(`^/usr/(local/)?(include|lib)/|/include/c\+\+/|(^|/)(bits|ext)/[a-z_0-9]+\.(h|tcc)$`)
	systemModule = regexp.MustCompile(`^(libstdc\+\+|libc\+\+|libc\+\+abi|libgfortran|libc|ld-linux-x86-64|libnumaopt)[.-]`)
)

// siteName is how a person recognises a call stack: its first frame that is not
// an allocator's, `file.c:42 (init_grid)`.
func siteName(s profile.Site, modules []ident.Module) string {
	for _, f := range s.Frames {
		if c, ok := ownCode(f, modules); ok {
			return symbol.Name(c, modules)
		}
	}
	for _, f := range s.Frames {
		if f.Module >= 0 && !systemModule.MatchString(filepath.Base(modules[f.Module].Path)) {
			return symbol.Name(f, modules)
		}
	}
	if len(s.Frames) > 0 {
		return symbol.Name(s.Frames[0], modules)
	}
	return "unknown site"
}

// ownCode is a frame without the inlined functions of system headers and
// allocator wrappers; false where nothing is left of it.
func ownCode(f ident.Code, modules []ident.Module) (ident.Code, bool) {
	if f.Module < 0 || systemModule.MatchString(filepath.Base(modules[f.Module].Path)) {
		return f, false
	}
	if len(f.Inlined) == 0 {
		return f, !wrapper.MatchString(functionName(f.Symbol))
	}
	for i, l := range f.Inlined {
		if !systemFile.MatchString(l.File) && !wrapper.MatchString(l.Function) {
			f.Inlined = f.Inlined[i:]
			return f, true
		}
	}
	return f, false
}

// siteNames names all sites; of several with one name the second is `name #2`, by the
// places of their calls, so that a program's sites have the same names in each profile.
func siteNames(sites []profile.Site, modules []ident.Module) []string {
	order := make([]int, len(sites))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareStacks(sites[a].Frames, sites[b].Frames, modules) })
	seen := map[string]int{}
	names := make([]string, len(sites))
	for _, i := range order {
		name := siteName(sites[i], modules)
		seen[name]++
		if n := seen[name]; n > 1 {
			name = fmt.Sprintf("%s #%d", name, n)
		}
		names[i] = name
	}
	return names
}

// compareStacks compares two call stacks from the innermost frame on.
func compareStacks(a, b []ident.Code, modules []ident.Module) int {
	return slices.CompareFunc(a, b, func(x, y ident.Code) int {
		return cmp.Or(cmp.Compare(x.Offset, y.Offset), strings.Compare(pathOf(x, modules), pathOf(y, modules)))
	})
}

func pathOf(c ident.Code, modules []ident.Module) string {
	if c.Module < 0 {
		return ""
	}
	return modules[c.Module].Path
}

// imageName is the base name of a module, as ls shows it.
func imageName(m ident.Module) string {
	if i := strings.Index(m.Path, " (deleted)"); i > 0 {
		return filepath.Base(m.Path[:i])
	}
	return filepath.Base(m.Path)
}
