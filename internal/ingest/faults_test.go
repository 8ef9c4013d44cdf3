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
	if got, want := evenRemote(p), "95.0% of faults outside stacks and program image are remote, 90.0% where every page"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := evenRemote(profiletest.Draw(2, 1, "u heap: 0 1 0 | 1 0 1")); got != "" {
		t.Errorf("of first touches: %q", got)
	}
}
