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
// parameters: C++ and Rust demangled, `__mod_MOD_sub` of gfortran and `_QMmodPsub` of
// flang as `mod::sub`, flang's main program as gfortran's, `MAIN__`, suffixes of clones
// such as `.constprop.0` and of outlined loops dropped.
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
	if symbol == flangMain {
		return "MAIN__"
	}
	if flangName.MatchString(symbol) {
		return flangScope.ReplaceAllString(flangFirst.ReplaceAllString(symbol, ""), "::")
	}
	return symbol
}

// flangMain is the main program, whatever its name.
const flangMain = "_QQmain"

var (
	cloneSuffix   = regexp.MustCompile(`(\.(constprop|isra|part|cold|lto_priv|localalias|llvm)(\.\d+)*)+$`)
	fortranModule = regexp.MustCompile(`^__([a-z][a-z0-9_]*)_MOD_([a-z0-9_]+)$`)
	// flang: modules, submodules and hosts around a procedure or an entity, each with a
	// capital before its name (flang/docs/BijectiveInternalNameUniquing.md).
	flangName  = regexp.MustCompile(`^_Q([MSF][a-z][a-z0-9_]*)*[PE][a-z][a-z0-9_]*$`)
	flangFirst = regexp.MustCompile(`^_Q[A-Z]`)
	flangScope = regexp.MustCompile(`[MSFPE]`)
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
