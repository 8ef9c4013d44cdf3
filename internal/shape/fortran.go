package shape

import (
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"numaopt/internal/symbol"
)

var (
	allocateWord = regexp.MustCompile(`(?i)\ballocate\s*\(`)
	parameter    = regexp.MustCompile(`(?i)\bparameter\b`)
	definition   = regexp.MustCompile(`^\s*\(?\s*(\w+)\s*=\s*(.+?)\s*$`)
	fortranName  = regexp.MustCompile(`[a-z]\w*`)
	integer      = regexp.MustCompile(`\b0*(\d+)(?:_\w+)?\b`) // 0100 is a hundred, 100_8 is of kind 8
)

// allocate is the arrays of the ALLOCATE statements that begin in a line (from 1), of
// several the one that column (from 1) is in or behind, all if that is 0: names in lower
// case, Dims in memory order, 0 where no constant says it, Elem 0.
func allocate(text []string, line, column int) (list []symbol.Array) {
	all := strings.Split(statement(text, line), ";")
	if column > 0 && line <= len(text) { // gfortran gives the place behind the statement
		if k := strings.Count(text[line-1][:min(column-1, len(text[line-1]))], ";"); k < len(all) {
			all = all[k : k+1]
		}
	}
	constants := parameters(text)
	for _, code := range all {
		list = append(list, allocated(code, constants)...)
	}
	return list
}

// allocated is the arrays of one statement.
func allocated(code string, constants map[string]int64) (list []symbol.Array) {
	at := allocateWord.FindStringIndex(code)
	if at == nil {
		return nil
	}
	arguments := code[at[1]:]
	if _, rest, typed := strings.Cut(arguments, "::"); typed {
		arguments = rest
	}
	for _, item := range items(arguments) {
		name, bounds, ok := strings.Cut(item, "(")
		if name = strings.TrimSpace(name); !ok || fortranName.FindString(name) != name {
			continue // stat=, source=, a component of a structure, a scalar
		}
		a := symbol.Array{Variable: name}
		for _, b := range items(bounds) {
			a.Dims = append(a.Dims, extent(b, constants))
		}
		slices.Reverse(a.Dims)
		list = append(list, a)
	}
	return list
}

// statement is a line with those that continue it, in lower case, without comments.
func statement(text []string, line int) string {
	var b strings.Builder
	for ; line >= 1 && line <= len(text); line++ {
		code, _, _ := strings.Cut(strings.ToLower(text[line-1]), "!")
		code = strings.TrimSpace(code)
		more := strings.HasSuffix(code, "&")
		b.WriteString(strings.Trim(code, "&") + " ")
		if !more && code != "" {
			break
		}
	}
	return b.String()
}

// items splits a list at its commas, up to the bracket that closes it.
func items(s string) (list []string) {
	depth, from := 0, 0
	for i := range s {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return append(list, strings.TrimSpace(s[from:i]))
			}
		case ',':
			if depth == 0 {
				list, from = append(list, strings.TrimSpace(s[from:i])), i+1
			}
		}
	}
	return append(list, strings.TrimSpace(s[from:]))
}

// extent is the elements of the bounds "n" or "0:n+1"; 0 is not known.
func extent(bounds string, constants map[string]int64) int64 {
	lower, upper, both := strings.Cut(bounds, ":")
	if !both {
		lower, upper = "1", bounds
	}
	lo, ok := evaluate(lower, constants)
	hi, too := evaluate(upper, constants)
	if !ok || !too {
		return 0
	}
	return max(0, hi-lo+1)
}

// parameters is the named constants of a source file, of integers; those that have
// several values in it are left out.
func parameters(text []string) map[string]int64 {
	constants, twice := make(map[string]int64), make(map[string]bool)
	for i, l := range text {
		at := parameter.FindStringIndex(l)
		if at == nil {
			continue
		}
		code := statement(text, i+1)
		_, rest, found := strings.Cut(code, "::")
		if !found {
			_, rest, _ = strings.Cut(code, "parameter")
			rest = strings.TrimPrefix(strings.TrimSpace(rest), "(")
		}
		for _, item := range items(rest) {
			m := definition.FindStringSubmatch(item)
			if m == nil {
				continue
			}
			n, ok := evaluate(m[2], constants)
			if old, known := constants[m[1]]; !ok || known && old != n {
				twice[m[1]] = true
			}
			constants[m[1]] = n
		}
	}
	for name := range twice {
		delete(constants, name)
	}
	return constants
}

// evaluate is the value of an expression of integers and named constants. Literals become
// Go's; reals and text are none of a bound.
func evaluate(expression string, constants map[string]int64) (int64, bool) {
	known := !strings.ContainsAny(expression, ".'")
	literals := integer.ReplaceAllString(strings.ToLower(expression), "$1")
	text := fortranName.ReplaceAllStringFunc(literals, func(name string) string {
		n, ok := constants[name]
		known = known && ok
		return constant.MakeInt64(n).String()
	})
	if !known {
		return 0, false
	}
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text)
	if err != nil || v.Value == nil || v.Value.Kind() != constant.Int {
		return 0, false
	}
	return constant.Int64Val(v.Value)
}
