package launch

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/symbol"
)

// RegionsOf returns the entries of the parallel loops that names mean, in the
// program of a command, what it starts where it is a wrapper, and the libraries of
// both: each name is a function that contains loops, the symbol of an outlined
// function, "file.c:42", or "file.c:42 (f)". A name without a loop is an error
// that lists the loops there are.
func RegionsOf(command, environ, names []string, table *symbol.Table) ([]FuncOffset, error) {
	return regions(newFiles(command, environ, nil, table).closure(), names, table)
}

// regions searches several files.
func regions(paths, names []string, table *symbol.Table) ([]FuncOffset, error) {
	var out []FuncOffset
	var have []string
	found := make([]bool, len(names))
	for _, path := range paths {
		m, err := table.Open(path)
		if err != nil {
			if len(paths) == 1 {
				return nil, err
			}
			continue
		}
		for _, l := range m.OutlinedLoops() {
			have = append(have, regionName(l))
			matched := false
			for i, name := range names {
				if matchesLoop(l, name) {
					found[i], matched = true, true
				}
			}
			if matched {
				out = append(out, FuncOffset{Path: path, Offset: l.Lo})
			}
		}
	}
	for i, ok := range found {
		if !ok {
			return nil, fmt.Errorf("no parallel region is called %q: %s; a region is counted whole, not one loop in it", names[i], listed(have))
		}
	}
	return out, nil
}

// regionName is a loop's name as reports have it.
func regionName(l symbol.Loop) string {
	if l.File == "" {
		return l.Symbol
	}
	return fmt.Sprintf("%s:%d (%s)", filepath.Base(l.File), l.Line, l.Function)
}

// matchesLoop reports whether name means a loop.
func matchesLoop(l symbol.Loop, name string) bool {
	if name == "" {
		return false
	}
	lower := func(s string) string {
		if ident.Fortran(l.File) { // where case means nothing
			return strings.ToLower(s)
		}
		return s
	}
	wanted, function := lower(name), lower(l.Function)
	if wanted == lower(l.Symbol) || wanted == lower(regionName(l)) || wanted == function || strings.HasSuffix(function, "::"+wanted) {
		return true
	}
	if l.File == "" {
		return false
	}
	place := fmt.Sprintf("%s:%d", l.File, l.Line)
	return name == place || strings.HasSuffix(place, "/"+filepath.Clean(name))
}

// mostListed is how many loops an error lists.
const mostListed = 12

// listed lists the loops there are.
func listed(have []string) string {
	sort.Strings(have)
	switch {
	case len(have) == 0:
		return "the program has no OpenMP regions"
	case len(have) > mostListed:
		return fmt.Sprintf("there are %s and %d more", strings.Join(have[:mostListed], ", "), len(have)-mostListed)
	}
	return "there are " + strings.Join(have, ", ")
}
