package diff

import (
	"fmt"
	"strings"
	"testing"
)

// TestAlign: words stand for things of one function in the order of the source; the same
// letters are alike, a capital half so.
func TestAlign(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"the same", "a b c", "a b c", "a-a b-b c-c"},
		{"one more in front", "a b", "x a b", "a-a b-b"},
		{"one more between", "a b", "a x b", "a-a b-b"},
		{"one less", "a b c", "a c", "a-a c-c"},
		{"one replaced", "a b c", "a x c", "a-a c-c"},
		{"nothing alike", "a", "b", ""},
		{"none", "", "a b", ""},
		{"swapped: the order stays", "a b", "b a", "b-b"},
		{"half alike is enough for one", "a", "A", "a-A"},
		{"two that are alike, one more", "a a", "a a a", "a-a? a-a?"},
		{"one of two alike went", "a a b", "a b", "a-a? b-b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := strings.Fields(c.before), strings.Fields(c.after)
			var got []string
			for _, p := range align(len(before), len(after), func(i, j int) float64 {
				switch {
				case before[i] == after[j]:
					return 2
				case strings.EqualFold(before[i], after[j]):
					return 1
				}
				return 0.4
			}) {
				s := fmt.Sprintf("%s-%s", before[p.before], after[p.after])
				if p.doubt {
					s += "?"
				}
				got = append(got, s)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%s to %s: %q, want %q", c.before, c.after, s, c.want)
			}
		})
	}
}
