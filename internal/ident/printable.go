package ident

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is s on one line, without what a terminal would take for a command: a name
// in a profile can be anything. No-break spaces stay.
func Printable(s string) string {
	const noBreak = '\u00a0'
	return strings.Map(func(r rune) rune {
		switch {
		case r == noBreak:
			return r
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, s)
}
