package ident

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"größe[3]":            "größe[3]",
		"a\nb\tc\r\u2028d":    "a b c  d",
		"\x1b[31m\x07\u009bx": "�[31m��x",
		"\u202eabc\xff":       "�abc�", // right to left; not UTF-8
		"5\u00a0%":            "5\u00a0%",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
