package advice

import (
	"regexp"
	"slices"
	"strings"
)

// Language is that of a source file.
type Language string

// The languages.
const (
	C       Language = "C"
	CXX     Language = "C++"
	Fortran Language = "Fortran"
)

// languageOf tells the language by the name of a file; "" is none that is understood.
func languageOf(file string) Language {
	switch file = strings.ToLower(file[strings.LastIndexByte(file, '.')+1:]); file {
	case "c", "h":
		return C
	case "cc", "cpp", "cxx", "c++", "hpp", "hh":
		return CXX
	case "f90", "f95", "f03", "f08", "f18":
		return Fortran
	}
	return ""
}

// loop is a loop of a source file, as far as its header is understood.
type loop struct {
	// Var counts from Lo up to but not with Hi in C, to Hi in Fortran, in either
	// direction: Down. Empty where the header is not understood.
	Var, Type, Lo, Hi string
	Down              bool
	Line              int // of the header, from 1
	// [head, start) is the header in the text, [start, end) the body; the whole
	// statement ends at after.
	head, start, end, after int
	// pragma is the directive before the loop without its sentinel, in one line, which
	// begins at the byte directive: "omp parallel for schedule(static)".
	pragma    string
	directive int
	parent    *loop // the loop around it in the same function
	inner     []*loop
}

// parallel reports whether the loop's iterations are shared among threads.
func (l *loop) parallel() bool {
	return worksharing.MatchString(l.pragma)
}

var worksharing = regexp.MustCompile(`^omp\s+.*\b(for|do)\b`)

// file is the loops of a source file.
type file struct {
	language Language
	text     string // as it is
	code     string // the same without comments, strings and directives, byte by byte
	loops    []*loop
	lines    []int // where each begins
}

// parse finds the loops of a source text; nil in a language that is not understood.
func parse(name, text string) *file {
	f := &file{language: languageOf(name), text: text, lines: []int{0}}
	for i := range text {
		if text[i] == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	switch f.language {
	case C, CXX:
		f.code = blankC(text)
		f.parseC()
	case Fortran:
		f.code = blankFortran(text)
		f.parseFortran()
	default:
		return nil
	}
	return f
}

// line is the number of the line that holds the byte at, from 1.
func (f *file) line(at int) int {
	n, found := slices.BinarySearch(f.lines, at)
	if found {
		return n + 1
	}
	return n
}

// at is the parallel loop that a profile's line means: that of the directive, of the
// header, or one within; the innermost of these, and nil if there is none.
func (f *file) at(line int) (best *loop) {
	for _, l := range f.loops {
		if l.parallel() && f.line(l.directive) <= line && line <= f.line(l.after-1) && (best == nil || l.head > best.head) {
			best = l
		}
	}
	return best
}

// region is the parallel loops within the parallel region whose directive is at a
// line, or whose block or procedure begins there; they share one call for the thread's number in
// gcc's code.
func (f *file) region(line int) (list []*loop) {
	from := f.lines[max(0, min(line, len(f.lines))-1)]
	until := f.regionEnd(from)
	for _, l := range f.loops {
		if l.parallel() && l.head > from && l.head < until {
			list = append(list, l)
		}
	}
	return list
}

// regionEnd is where the block that begins in the line at from, or the next, ends.
func (f *file) regionEnd(from int) int {
	if f.language == Fortran {
		if next := lineEnd(f.code, from, false); procedure.MatchString(f.code[from:next]) {
			return f.unitEnd(next)
		}
		if i := endParallel.FindStringIndex(f.text[from:]); i != nil {
			return from + i[0]
		}
		return len(f.text)
	}
	open := strings.IndexByte(f.code[from:], '{')
	if open < 0 {
		return from
	}
	return matching(f.code, from+open) + 1
}

// procedure is a line that begins one: loops in it that belong to a region outside.
var procedure = regexp.MustCompile(`(?i)^[ \t]*(?:\w+[ \t]+)*(?:subroutine|function|program)\b`)

var endParallel = regexp.MustCompile(`(?i)!\$omp\s+end\s+parallel\s*\n`)

// blankC replaces comments, the text of strings, and preprocessor lines by spaces.
func blankC(text string) string {
	b := []byte(text)
	blank := func(i, j int) {
		for ; i < j; i++ {
			if b[i] != '\n' {
				b[i] = ' '
			}
		}
	}
	fresh := true // nothing but space before in the line
	for i := 0; i < len(b); {
		j := i + 1
		switch {
		case strings.HasPrefix(text[i:], "//"):
			j = lineEnd(text, i, false)
			blank(i, j)
		case strings.HasPrefix(text[i:], "/*"):
			if end := strings.Index(text[i+2:], "*/"); end >= 0 {
				j = i + end + 4
			} else {
				j = len(b)
			}
			blank(i, j)
		case b[i] == '#' && fresh:
			j = lineEnd(text, i, true)
			blank(i, j)
		case b[i] == '"' || b[i] == '\'':
			for j < len(b) && text[j] != text[i] && text[j] != '\n' {
				if text[j] == '\\' {
					j++
				}
				j++
			}
			j = min(j+1, len(b))
			blank(i+1, max(i+1, j-1))
		}
		for k := i; k < j; k++ {
			fresh = text[k] == '\n' || fresh && (text[k] == ' ' || text[k] == '\t')
		}
		i = j
	}
	return string(b)
}

// lineEnd is the end of the line at i; continued lines end where the last does.
func lineEnd(text string, i int, continued bool) int {
	for ; i < len(text); i++ {
		if text[i] == '\n' && !(continued && strings.HasSuffix(strings.TrimRight(text[:i], " \t\r"), `\`)) {
			return i
		}
	}
	return i
}

// matching is the index of the bracket that closes the one at i; len(code) where none
// does.
func matching(code string, i int) int {
	closing := map[byte]byte{'(': ')', '[': ']', '{': '}'}[code[i]]
	depth := 0
	for j := i; j < len(code); j++ {
		switch code[j] {
		case code[i]:
			depth++
		case closing:
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return len(code)
}

var (
	word      = regexp.MustCompile(`[A-Za-z_]\w*`)
	keywordC  = regexp.MustCompile(`\bfor\s*\(`)
	condC     = regexp.MustCompile(`^\s*(\w+)\s*(<=|>=|<|>|!=)\s*(.+?)\s*$`)
	startC    = regexp.MustCompile(`^\s*((?:[A-Za-z_]\w*[\s*]+)*)([A-Za-z_]\w*)\s*=\s*(.+?)\s*$`)
	compound  = regexp.MustCompile(`^(?:if|while|switch|for)\b`)
	pragmaC   = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*pragma[ \t]+((?:[^\\\n]|\\\r?\n)*)$`)
	spaceRuns = regexp.MustCompile(`[\s\\]+`)
)

// parseC finds the loops of C and C++.
func (f *file) parseC() {
	pragmas := pragmaC.FindAllStringSubmatchIndex(f.text, -1)
	for _, m := range keywordC.FindAllStringIndex(f.code, -1) {
		open := m[1] - 1
		closing := matching(f.code, open)
		if closing == len(f.code) {
			break // unfinished
		}
		l := &loop{head: m[0], start: closing + 1, directive: m[0], Line: f.line(m[0])}
		l.after = statementEnd(f.code, l.start)
		l.end = l.after
		l.headerC(f.code[open+1 : closing])
		for _, p := range pragmas {
			if p[1] <= l.head && strings.TrimSpace(f.code[p[1]:l.head]) == "" {
				l.pragma, l.directive = spaceRuns.ReplaceAllString(f.text[p[2]:p[3]], " "), p[0]
				break
			}
		}
		f.add(l)
	}
}

// add puts l in its place in the nest: loops come in the order of their headers.
func (f *file) add(l *loop) {
	for i := len(f.loops) - 1; i >= 0; i-- {
		if o := f.loops[i]; o.start <= l.head && l.after <= o.after {
			l.parent = o
			o.inner = append(o.inner, l)
			break
		}
	}
	f.loops = append(f.loops, l)
}

// statementEnd is where the statement ends that begins at or after i.
func statementEnd(code string, i int) int {
	for i < len(code) && (code[i] == ' ' || code[i] == '\t' || code[i] == '\n' || code[i] == '\r') {
		i++
	}
	if i >= len(code) {
		return len(code)
	}
	if code[i] == '{' {
		return min(matching(code, i)+1, len(code))
	}
	if m := compound.FindString(code[i:]); m != "" {
		open := strings.IndexByte(code[i:], '(')
		if open < 0 {
			return len(code)
		}
		end := statementEnd(code, min(matching(code, i+open)+1, len(code)))
		rest := strings.TrimLeft(code[end:], " \t\r\n")
		if m == "if" && strings.HasPrefix(rest, "else") {
			return statementEnd(code, len(code)-len(rest)+len("else"))
		}
		return end
	}
	for ; i < len(code); i++ {
		switch code[i] {
		case '(', '[':
			i = matching(code, i)
		case '{':
			block := strings.HasSuffix(strings.TrimRight(code[:i], " \t\r\n"), ")") // after a macro that is a loop
			if i = matching(code, i); block {
				return min(i+1, len(code))
			}
		case ';':
			return i + 1
		}
	}
	return len(code)
}

// headerC reads "int x = a; x < b; x++" and its kin.
func (l *loop) headerC(header string) {
	part := strings.Split(header, ";")
	if len(part) != 3 {
		return
	}
	start, cond := startC.FindStringSubmatch(part[0]), condC.FindStringSubmatch(part[1])
	if start == nil || cond == nil || start[2] != cond[1] || strings.ContainsRune(start[3], ',') {
		return
	}
	name := start[2]
	step := strings.Join(strings.Fields(part[2]), "")
	up := step == name+"++" || step == "++"+name || step == name+"+=1"
	down := step == name+"--" || step == "--"+name || step == name+"-=1"
	bound := cond[3]
	switch {
	case up && (cond[2] == "<" || cond[2] == "!="):
		l.Lo, l.Hi = start[3], bound
	case up && cond[2] == "<=":
		l.Lo, l.Hi = start[3], plusOne(bound)
	case down && cond[2] == ">=":
		l.Lo, l.Hi, l.Down = bound, plusOne(start[3]), true
	case down && cond[2] == ">":
		l.Lo, l.Hi, l.Down = plusOne(bound), plusOne(start[3]), true
	default:
		return
	}
	l.Var, l.Type = name, strings.TrimSpace(start[1])
}

var lessOne = regexp.MustCompile(`^(.*\S)\s*-\s*(\d+)$`)

// plusOne is the expression + 1, in the shortest form for "n - 1" and numbers.
func plusOne(expression string) string {
	if m := lessOne.FindStringSubmatch(expression); m != nil && balanced(m[1]) {
		switch m[2] {
		case "1":
			return m[1]
		case "2":
			return m[1] + " - 1"
		}
	}
	if expression == "0" {
		return "1"
	}
	return expression + " + 1"
}

func balanced(s string) bool { return strings.Count(s, "(") == strings.Count(s, ")") }

// words reports whether one of the names occurs in text.
func words(text string, names ...string) bool {
	for _, w := range word.FindAllString(text, -1) {
		if slices.Contains(names, w) {
			return true
		}
	}
	return false
}

// flatIndex is "i * n + j", each with an offset perhaps: rows that are indexed by hand.
var flatIndex = regexp.MustCompile(`^\(?(\w+)\s*([+-]\s*\d+)?\)?\s*\*\s*(\w+)\s*\+\s*(\w+\s*(?:[+-]\s*\d+)?)$`)

// flat takes the subscript of an array that is indexed by hand apart, into those of
// row and column, and the text that stands for the length of a row.
func flat(subscript string) (list []string, length string, ok bool) {
	m := flatIndex.FindStringSubmatch(subscript)
	if m == nil {
		return nil, "", false
	}
	return []string{m[1] + m[2], m[4]}, m[3], true
}

// reference is a use of an array.
type reference struct {
	at, end    int      // in the code
	subscripts []string // in memory order, the slowest dimension first
}

// subscripts are those of each use of array name in code; those of an array that is
// indexed by hand taken apart.
func (f *file) subscripts(code, name string) (uses [][]string) {
	for _, r := range f.references(code, name) {
		uses = append(uses, r.subscripts)
	}
	return uses
}

// references are the uses of array name in code.
func (f *file) references(code, name string) (uses []reference) {
	for _, m := range word.FindAllStringIndex(code, -1) {
		if code[m[0]:m[1]] != name {
			continue
		}
		if f.language == Fortran {
			if s := fortranSubscripts(code[m[1]:]); s != nil {
				open := m[1] + strings.IndexByte(code[m[1]:], '(')
				uses = append(uses, reference{m[0], matching(code, open) + 1, s})
			}
			continue
		}
		r := reference{at: m[0], end: m[1]}
		for {
			rest := strings.TrimLeft(code[r.end:], " \t\n")
			if !strings.HasPrefix(rest, "[") {
				break
			}
			i := len(code) - len(rest)
			end := matching(code, i)
			if end == len(code) {
				break
			}
			r.subscripts = append(r.subscripts, strings.TrimSpace(code[i+1:end]))
			r.end = end + 1
		}
		if len(r.subscripts) == 1 {
			if two, _, ok := flat(r.subscripts[0]); ok {
				r.subscripts = two
			}
		}
		uses = append(uses, r)
	}
	return uses
}

var (
	callC       = regexp.MustCompile(`([A-Za-z_]\w*)\s*\(`)
	callFortran = regexp.MustCompile(`(?i)\bcall\s+([a-z]\w*)`)
	// noCall is what may stand before a bracket and touches none of the program's data:
	// words of the language, and the library's functions of numbers.
	noCall = regexp.MustCompile(`^(if|for|while|switch|return|sizeof|_Alignof|alignof|decltype|__typeof__|typeof|case|defined|` +
		`(std|f)?(abs|fabs|min|max|fmin|fmax|sqrt|cbrt|exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|floor|ceil|round|trunc|fmod|fma|hypot|creal|cimag|cabs|conj|cexp)[fl]?|` +
		`int|long|short|char|float|double|unsigned|size_t|omp_get_\w+)$`)
)

// calls is the functions that the text of l calls, without those of noCall; of
// Fortran the subroutines, as a function looks like an array.
func (f *file) calls(l *loop) []string { return f.callsIn(f.code[l.start:l.end]) }

// callsIn is the same of a part of the code.
func (f *file) callsIn(code string) (names []string) {
	is := callC
	if f.language == Fortran {
		is = callFortran
	}
	for _, m := range is.FindAllStringSubmatch(code, -1) {
		if name := m[1]; !noCall.MatchString(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
