package figure

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// fit cuts the middle out of what is too wide: of "solver.c:88 (long_name)" both
// the place and the end of the name tell something. What cannot be printed, and
// would make an SVG invalid, is replaced.
func fit(style text.Style, s string, width vg.Length) string {
	s = printable(s)
	if style.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	least, most := 0, min(len(runes), 400) // no line has room for more letters
	for least < most {
		n := (least + most + 1) / 2
		if style.Width(cut(runes, n)) <= width {
			least = n
		} else {
			most = n - 1
		}
	}
	return cut(runes, least)
}

// cut keeps n letters of s.
func cut(s []rune, n int) string {
	tail := n / 2
	return string(s[:n-tail]) + "…" + string(s[len(s)-tail:])
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
