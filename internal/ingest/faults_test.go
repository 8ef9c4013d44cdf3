package ingest

import (
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// TestEvenRemote: two pages, one of them used much, and from afar; of a page that was on
// two nodes both are one.
func TestEvenRemote(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0 0 30 | 1 1 2 | 0 0 7", "libc image: 0 9 0")
	p.Pages[2].Index = 1
	got := strings.Join(evenRemote(p), "\n")
	for _, want := range []string{"95.0% of faults outside stacks and program image are remote, 90.0% where every page weighs the same\n", "is missed if it makes its accesses in less than 14% of the time"} {
		if !strings.Contains(got, want) || strings.Contains(got, "run longer") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	p.Run.Recording = &profile.Recording{}
	if got := evenRemote(p)[0]; !strings.Contains(got, "weighs the same (how far off that is cannot be told") {
		t.Errorf("of no looks: %q", got)
	}
	p.Run.Recording = &profile.Recording{EvenPeriod: 4}
	if got := evenRemote(p)[0]; !strings.Contains(got, "90.0% where every page weighs the same (95% confidence: 59.6 to 98.2,") {
		t.Errorf("of ten that are independent: %q", got)
	}
	p.Rows[0].Count = 8
	if got := evenRemote(p)[1]; !strings.Contains(got, "9.0 faults a page on average: ") || !strings.Contains(got, "less than 28% of the time; run longer") {
		t.Errorf("of few: %q", got)
	}
	if got := evenRemote(profiletest.Draw(2, 1, "u heap: 0 1 0 | 1 0 1")); got != nil {
		t.Errorf("of first touches: %q", got)
	}
}
