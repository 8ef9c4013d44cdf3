package ingest

import (
	"fmt"

	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// again is the page faults to each page from which on they go on after the first touch.
const again = 1.5

// enough is the page faults to each page from which on sharing is told: with ten a node
// that makes a quarter of the accesses is missed about once in twenty times.
const enough = 10

// evenRemote says how remote the pages of a profile of page faults are, without stacks and
// the program's image, where each weighs the same, and whether there are enough faults to tell who shares them; nothing where
// there are first touches only.
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
	said := []string{fmt.Sprintf("a page has a fault each time that the kernel looks who uses it, however often it is used: %.1f%% of faults outside stacks and program image are remote, %.1f%% where every page weighs the same",
		100*total.remote/total.all, 100*sum/float64(len(pages)))}
	if each := total.all / float64(len(pages)); each < enough {
		said = append(said, fmt.Sprintf("%.1f faults a page on average: sharing is undercounted; run longer, or let the kernel look more often (/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms) for %d or more", each, enough))
	}
	return said
}
