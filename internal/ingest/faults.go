package ingest

import (
	"fmt"
	"math"

	"numaopt/internal/profile"
	"numaopt/internal/stat"
	"numaopt/internal/topo"
)

// again is the page faults to each page from which on they go on after the first touch.
const again = 1.5

// enough is the page faults to each page from which on sharing is told: with ten a node
// that uses a page for a quarter of the time is missed about once in twenty times.
const enough = 10

// evenRemote says how remote the pages of a profile of page faults are, without stacks and
// the program's image, where each weighs the same, between which limits by how much the
// kernel's looks differ, and which sharing there are too few faults to tell; nothing
// where there are first touches only.
func evenRemote(p *profile.Profile) []string {
	type page struct{ object, index int }
	type use struct{ remote, all float64 }
	pages := map[page]*use{}
	var total use
	for i := range p.Rows {
		r := &p.Rows[i]
		g := &p.Pages[r.Page]
		if g.Home == topo.Unknown || p.Objects[g.Object].Kind.Private() {
			continue // the kernel does not look at the program's image again
		}
		u := pages[page{g.Object, g.Index}]
		if u == nil {
			u = new(use)
			pages[page{g.Object, g.Index}] = u
		}
		u.all += float64(r.Count)
		total.all += float64(r.Count)
		if g.Home != p.Threads[r.Thread].Node {
			u.remote += float64(r.Count)
			total.remote += float64(r.Count)
		}
	}
	if total.all < again*float64(len(pages)) || total.all == 0 {
		return nil
	}
	sum := 0.0
	for _, u := range pages {
		sum += u.remote / u.all
	}
	even := sum / float64(len(pages))
	remote := fmt.Sprintf("a page has a fault each time that the kernel looks who uses it, however often it is used: %.1f%% of faults outside stacks and program image are remote, %.1f%% where every page weighs the same",
		100*total.remote/total.all, 100*even)
	switch r := p.Run.Recording; {
	case r == nil:
	case r.EvenPeriod == 0:
		remote += " (how far off that is cannot be told: the kernel hardly looked, or faults have no physical addresses)"
	default:
		n := total.all / r.EvenPeriod
		lo, hi := stat.Wilson(even*n, n)
		remote += fmt.Sprintf(" (95%% confidence: %.1f to %.1f, from how much the looks differ)", 100*lo, 100*hi)
	}
	each := total.all / float64(len(pages))
	missed := fmt.Sprintf("%.1f faults a page on average: of the nodes that share a page one is missed if it makes its accesses in less than %.0f%% of the time", each, 100*unseen(each))
	if each < enough {
		missed += fmt.Sprintf("; run longer, or let the kernel look more often (/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms) for %d faults or more", enough)
	}
	return []string{remote, missed}
}

// unseen is the share of the time in which a node may use a page and, with 95 %
// confidence, not be seen there in n looks.
func unseen(n float64) float64 { return 1 - math.Pow(0.05, 1/n) }
