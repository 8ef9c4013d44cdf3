package advice

import (
	"regexp"
	"slices"
	"strings"
)

var (
	doStart   = regexp.MustCompile(`(?i)^\s*(?:\w+\s*:\s*)?do\s+([a-z]\w*)\s*=\s*(.+?)\s*$`)
	doOther   = regexp.MustCompile(`(?i)^\s*(?:\w+\s*:\s*)?do\s*(?:while\b.*|concurrent\b.*)?$`)
	doEnd     = regexp.MustCompile(`(?i)^\s*end\s*do\b`)
	directive = regexp.MustCompile(`(?i)^\s*!\$(omp\s.*?)\s*$`)
)

// blankFortran replaces comments, directives and the text of strings by spaces.
func blankFortran(text string) string {
	b := []byte(text)
	var quote byte
	comment := false
	for i := range b {
		switch c := b[i]; {
		case c == '\n':
			quote, comment = 0, false
		case comment || quote != 0 && c != quote:
			b[i] = ' '
		case quote != 0:
			quote = 0
		case c == '\'' || c == '"':
			quote = c
		case c == '!':
			b[i], comment = ' ', true
		}
	}
	return string(b)
}

// parseFortran finds the loops of free-form Fortran, line by line.
func (f *file) parseFortran() {
	var open []*loop // nil for a loop without a count
	pragma, at := "", 0
	for n, begin := range f.lines {
		end := len(f.text)
		if n+1 < len(f.lines) {
			end = f.lines[n+1]
		}
		raw, code := strings.TrimRight(f.text[begin:end], "\r\n"), strings.TrimRight(f.code[begin:end], " \r\n")
		switch m := directive.FindStringSubmatch(raw); {
		case m != nil && strings.HasSuffix(pragma, "&"):
			pragma = strings.TrimSuffix(pragma, "&") + strings.TrimPrefix(strings.TrimSpace(m[1][len("omp"):]), "&")
			continue
		case m != nil:
			pragma, at = strings.ToLower(m[1]), begin
			if strings.HasPrefix(spaceRuns.ReplaceAllString(pragma, " "), "omp end ") {
				f.closed(spaceRuns.ReplaceAllString(pragma, " "), begin, end)
				pragma = "" // it is not that of the next loop
			}
			continue
		case code == "":
			continue
		}
		for _, s := range statements(f.code[begin:end], begin) {
			open = f.statement(s.from, s.to, pragma, at, open)
			pragma = ""
		}
	}
	f.loops = slices.DeleteFunc(f.loops, func(l *loop) bool { return l.after == 0 })
}

// span is a part of the code.
type span struct{ from, to int }

// statements are those of the line of code that begins at the byte at, each with the
// semicolon behind it; the last has the line's end.
func statements(code string, at int) (list []span) {
	for {
		i := strings.IndexByte(code, ';')
		if i < 0 || strings.Trim(code[i:], "; \t\r\n") == "" {
			return append(list, span{at, at + len(code)})
		}
		list = append(list, span{at, at + i + 1})
		code, at = code[i+1:], at+i+1
	}
}

// statement begins or ends a loop with the statement in [begin, end), behind pragma,
// which begins at the byte at, and returns the loops that are open then.
func (f *file) statement(begin, end int, pragma string, at int, open []*loop) []*loop {
	code := strings.TrimRight(f.code[begin:end], "; \t\r\n")
	switch {
	case doStart.MatchString(code):
		l := &loop{head: begin, start: end, directive: begin, Line: f.line(begin)}
		l.headerFortran(doStart.FindStringSubmatch(code))
		if pragma != "" {
			l.pragma, l.directive = spaceRuns.ReplaceAllString(pragma, " "), at
		}
		open = append(open, l)
		f.loops = append(f.loops, l)
	case doOther.MatchString(code):
		open = append(open, nil)
	case doEnd.MatchString(code) && len(open) > 0:
		l := open[len(open)-1]
		open = open[:len(open)-1]
		if l == nil {
			break
		}
		l.end, l.after = begin, end
		for i := len(open) - 1; i >= 0 && l.parent == nil; i-- {
			if l.parent = open[i]; l.parent != nil {
				l.parent.inner = append(l.parent.inner, l)
			}
		}
	}
	return open
}

// closed makes an "omp end" directive in [begin, end) part of the loop that ended in the
// line before, if it is that loop's.
func (f *file) closed(pragma string, begin, end int) {
	construct := "omp " + strings.TrimSuffix(strings.TrimPrefix(pragma, "omp end "), " nowait")
	for _, l := range f.loops {
		if l.after == begin && shared.FindString(l.pragma) == construct {
			l.after = end
		}
	}
}

// headerFortran reads "do x = a, b" and "do x = b, a, -1".
func (l *loop) headerFortran(m []string) {
	bounds := splitTop(m[2])
	switch {
	case len(bounds) == 2:
		l.Var, l.Lo, l.Hi = m[1], bounds[0], bounds[1]
	case len(bounds) == 3 && bounds[2] == "1":
		l.Var, l.Lo, l.Hi = m[1], bounds[0], bounds[1]
	case len(bounds) == 3 && strings.ReplaceAll(bounds[2], " ", "") == "-1":
		l.Var, l.Lo, l.Hi, l.Down = m[1], bounds[1], bounds[0], true
	}
}

// splitTop splits at commas outside of brackets.
func splitTop(s string) (list []string) {
	depth, from := 0, 0
	for i := range s {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	return append(list, strings.TrimSpace(s[from:]))
}

// fortranSubscripts are those in the brackets at the start of code, the last, which
// is the slowest, first; nil where there are none.
func fortranSubscripts(code string) []string {
	rest := strings.TrimLeft(code, " \t")
	if !strings.HasPrefix(rest, "(") {
		return nil
	}
	list := splitTop(rest[1:matching(rest, 0)])
	slices.Reverse(list)
	return list
}
