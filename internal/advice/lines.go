package advice

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// wholeLines says why phases may not cut the lines that the functions go along which the
// parallel loop calls beside the loops along: a Fourier transform needs each as a whole. "" if
// they are seen to go from one element to the next. Each function is looked for in the
// same file.
func (n *nest) wholeLines(along []*loop) string {
	rest := []byte(n.file.code[n.par.start:n.par.end])
	for _, l := range along {
		for i := max(l.head, n.par.start); i < min(l.after, n.par.end); i++ {
			rest[i-n.par.start] = ' '
		}
	}
	for _, name := range n.file.callsIn(string(rest)) {
		if !n.file.sweeps(name) {
			return fmt.Sprintf("it calls %s, which is not seen to go from one element of a line to the next, and may need whole lines", name)
		}
	}
	return ""
}

// sweeps reports whether function name is nothing but plain loops one after the other,
// whose elements are each at the loop's index or beside: recurrences, if any.
func (f *file) sweeps(name string) bool {
	from, to := f.function(name)
	var top []*loop
	for _, l := range f.loops {
		if l.head < from || l.after > to {
			continue
		}
		if l.Var == "" || !f.stepwise(l) {
			return false
		}
		if l.parent == nil || l.parent.head < from {
			top = append(top, l)
		}
	}
	for i := 1; i < len(top); i++ {
		if strings.Trim(f.code[top[i-1].after:top[i].head], " \t\r\n;") != "" {
			return false
		}
	}
	return len(top) > 0 && len(f.callsIn(f.code[from:top[0].head]))+len(f.callsIn(f.code[top[len(top)-1].after:to])) == 0
}

// stride is "(i - 1) * step" and "i * step": an element of a line whose elements lie apart.
var stride = regexp.MustCompile(`^\(?(\w+([-+]\d+)?)\)?(\*\w+)?$`)

// stepwise reports whether the subscripts in l that are of its variable are the variable,
// or beside it.
func (f *file) stepwise(l *loop) bool {
	code := f.code[l.start:l.end]
	var names []string
	for _, name := range word.FindAllString(code, -1) {
		if slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		for _, s := range slices.Concat(f.subscripts(code, name)...) {
			if !words(s, l.Var) {
				continue
			}
			m := stride.FindStringSubmatch(squeezed(s))
			if m == nil {
				return false
			}
			if _, ok := offset(m[1], l.Var); !ok {
				return false
			}
		}
	}
	return true
}

// function is the bytes of the body of a function of the file; none where it is not there.
func (f *file) function(name string) (from, to int) {
	if f.language == Fortran {
		if m := regexp.MustCompile(`(?im)^[ \t]*(?:[\w]+[ \t]+)*subroutine[ \t]+` + name + `\b`).FindStringIndex(f.code); m != nil {
			return m[1], f.unitEnd(m[1])
		}
		return 0, 0
	}
	for _, m := range regexp.MustCompile(`\b`+name+`\s*\(`).FindAllStringIndex(f.code, -1) {
		end := min(matching(f.code, m[1]-1)+1, len(f.code))
		if rest := strings.TrimLeft(f.code[end:], " \t\r\n"); strings.HasPrefix(rest, "{") {
			open := len(f.code) - len(rest)
			return open, matching(f.code, open)
		}
	}
	return 0, 0
}

var endUnit = regexp.MustCompile(`(?im)^[ \t]*end[ \t]*(?:(?:subroutine|function|program|module)\b.*)?$`)

// unitEnd is where the procedure of Fortran ends that the byte at from is in.
func (f *file) unitEnd(from int) int {
	if m := endUnit.FindStringIndex(f.code[from:]); m != nil {
		return from + m[0]
	}
	return len(f.code)
}
