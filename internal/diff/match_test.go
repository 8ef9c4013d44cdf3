package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/ident"
	"numaopt/internal/profile/profiletest"
)

// draw reads items: "g(int)5:a" is what line 5 of g(int) allocates, like everything with
// the same letter; "X=..." is known as X in every profile of the build.
func draw(words string) (items []item, letters []string) {
	for _, w := range strings.Fields(words) {
		exact, rest, ok := strings.Cut(w, "=")
		if !ok {
			exact, rest = "", w
		}
		code, letter, _ := strings.Cut(rest, ":")
		f := frame{function: strings.TrimRight(code, "0123456789")}
		fmt.Sscan(code[len(f.function):], &f.line)
		x := item{exact: exact}
		x.describe("heap", []frame{f})
		items, letters = append(items, x), append(letters, letter)
	}
	return items, letters
}

func TestMatch(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"nothing edited", "f1:a f2:b", "f1:a f2:b", "0-0 1-1"},
		{"nothing edited, used otherwise", "f1:a f2:b", "f1:b f2:a", "0-0 1-1"},
		{"the order of the lists is none", "f1:a f2:b", "f2:b f1:a", "0-1 1-0"},
		{"the same build, used otherwise", "X=f1:a Y=f2:b", "Y=f2:a X=f3:b Z=f1:a", "0-1 1-0"},
		{"inserted in front", "f1:a f2:b", "f1:c f2:a f3:b", "0-1 1-2"},
		{"removed", "f1:a f2:b f3:c", "f1:a f2:c", "0-0 2-1"},
		{"which of two alike was removed: by place, and in doubt", "f1:a f5:a", "f5:a", "1-0?"},
		{"another function", "f1:a", "g1:a", ""},
		{"other arguments", "g(int)1:a", "g(long)1:a", "0-0"},
		{"other arguments, and the same are there", "g(int)1:a g(char)1:b", "g(long)1:a g(char)1:b", "0-0 1-1"},
	} {
		before, letters := draw(c.before)
		after, others := draw(c.after)
		var got []string
		for _, p := range match(before, after, func(i, j int) float64 {
			if letters[i] == others[j] {
				return 2
			}
			return 0.4
		}) {
			s := fmt.Sprintf("%d-%d", p.before, p.after)
			if p.doubt {
				s += "?"
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

// TestFrames: lines count from their function's declaration.
func TestFrames(t *testing.T) {
	p := profiletest.Draw(2, 1)
	for _, c := range []struct {
		code ident.Code
		want []frame
	}{
		{ident.Code{Inlined: []ident.Location{{Function: "f", File: "/a/f.c", Line: 15, FunctionLine: 10}, {Function: "main", File: "m.c", Line: 7}}},
			[]frame{{"f.c", "f", 5}, {"m.c", "main", 7}}},
		{ident.Code{Symbol: "_ZN4grid4stepEv"}, []frame{{"", "grid::step", 0}}},
		{ident.Code{Offset: 0x123}, []frame{{"", "app+0x123", 0}}},
	} {
		if got := frames(p, c.code); !slices.Equal(got, c.want) {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}
