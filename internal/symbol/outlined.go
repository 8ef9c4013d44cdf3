package symbol

import (
	"regexp"
	"strings"
)

// Loop is a function that a compiler made of the body of a parallel region.
type Loop struct {
	Symbol string
	Lo, Hi uint64
	// Function is the source function that contains the region, demangled; empty
	// where nobody knows.
	Function string
	File     string
	Line     int // of the pragma
}

var (
	// gcc and gfortran: f._omp_fn.0, perhaps with suffixes of clones.
	gccLoop = regexp.MustCompile(`^(.+?)\._omp_fn\.\d+(\..*)?$`)
	// clang before 17: .omp_outlined., .omp_outlined..3, .omp_outlined._debug__.1
	clangLoop = regexp.MustCompile(`^\.omp_outlined\.(_debug__)?(\.\d+)*(\..*)?$`)
	// clang since 17: f.omp_outlined, f.omp_outlined_debug__.1; flang: f..omp_par.1;
	// icx: f.DIR.OMP.PARALLEL.2.split
	namedLoop = regexp.MustCompile(`^(.+?)(\.omp_outlined(_debug__)?|\.\.omp_par|\.DIR\.OMP\.[A-Z.]+)(\..*)?$`)
)

// IsLoop reports whether an ELF symbol is that of an outlined parallel region.
func IsLoop(symbol string) bool {
	return gccLoop.MatchString(symbol) || clangLoop.MatchString(symbol) || namedLoop.MatchString(symbol)
}

// isHelper reports whether symbol is that of a function which clang makes for a
// directive: .omp.reduction.reduction_func.9, f.omp.reduction.reduction_func,
// .omp_task_entry..3, __captured_stmt.1.
func isHelper(symbol string) bool {
	return strings.Contains(symbol, ".omp.") || strings.HasPrefix(symbol, ".omp_") || strings.HasPrefix(symbol, "__captured_stmt")
}

// isDebugBody reports whether symbol is the body that clang calls, or inlines,
// in the outlined function proper when it makes debug information.
func isDebugBody(symbol string) bool { return strings.Contains(symbol, "_debug__") }

// OutlinedLoops returns the outlined functions by ascending address, those that
// the OpenMP library is given the address of.
func (m *Module) OutlinedLoops() []Loop {
	var out []Loop
	for _, f := range m.functions {
		if IsLoop(f.Symbol) && !isDebugBody(f.Symbol) {
			out = append(out, m.Loop(f))
		}
	}
	return out
}

// Loop describes an outlined function of the module.
func (m *Module) Loop(f Function) Loop {
	l := Loop{Symbol: f.Symbol, Lo: f.Lo, Hi: f.Hi}
	code := m.Code(f.Lo)
	if n := len(code.Inlined); n > 0 {
		outer := code.Inlined[n-1]
		l.Function, l.File, l.Line = outer.Function, outer.File, outer.Line
	}
	if line := m.loopLine(f.Lo); line > 0 {
		l.Line = line
	}
	if l.Function == "" {
		if name := Demangle(f.Symbol); !IsLoop(name) {
			l.Function = name
		}
	}
	return l
}
