package ingest

import (
	"strings"
	"testing"

	"numaopt/internal/profile/profiletest"
)

// TestEvenRemote: two pages, one of them used much, and from afar; of a page that was on
// two nodes both are one.
func TestEvenRemote(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0 0 30 | 1 1 2 | 0 0 7", "libc image: 0 9 0")
	p.Pages[2].Index = 1
	got := strings.Join(evenRemote(p), "\n")
	if want := "95.0% of faults outside stacks and program image are remote, 90.0% where every page"; !strings.Contains(got, want) || strings.Contains(got, "undercounted") {
		t.Errorf("%q, want %q", got, want)
	}
	p.Rows[0].Count = 8
	if got := strings.Join(evenRemote(p), "\n"); !strings.Contains(got, "9.0 faults a page on average: sharing is undercounted") {
		t.Errorf("of few: %q", got)
	}
	if got := evenRemote(profiletest.Draw(2, 1, "u heap: 0 1 0 | 1 0 1")); got != nil {
		t.Errorf("of first touches: %q", got)
	}
}
