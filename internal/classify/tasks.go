package classify

import (
	"path"
	"strings"

	"numaopt/internal/profile"
)

// tasks says who runs OpenMP tasks in a region outside loops.
type tasks uint8

const (
	none     tasks = iota
	ofOthers       // the team's threads; what the main thread does there is its own code, most likely
	ofAll
)

// mainsPart is how much more than the busiest other thread the main thread may do in
// a function whose tasks it shares: a task or two more, not the serial code of it.
const mainsPart = 2

// findTasks is by region how tasks run in it. A thread of an OpenMP team has nothing to
// run outside parallel regions but the runtime itself and tasks, which libgomp's threads
// take at the barrier that ends their region. The runtime gives a task to any thread.
func findTasks(p *profile.Profile) []tasks {
	team := make([]bool, len(p.Threads))
	for i := range p.Rows {
		r := &p.Rows[i]
		team[r.Thread] = team[r.Thread] || p.Regions[r.Region].Kind == profile.Loop
	}
	mains, by := make([]uint64, len(p.Regions)), make(map[[2]int]uint64) // by region; and thread
	for i := range p.Rows {
		r := &p.Rows[i]
		x := &p.Regions[r.Region]
		switch {
		case x.Kind != profile.Function || x.Thread != "" || openMP(p, x.Code.Module):
		case p.Threads[r.Thread].Rank == 0:
			mains[r.Region] += r.Count
		case team[r.Thread]:
			by[[2]int{int(r.Region), int(r.Thread)}] += r.Count
		}
	}
	is := make([]tasks, len(p.Regions))
	most := make([]uint64, len(p.Regions))
	for at, count := range by {
		is[at[0]], most[at[0]] = ofOthers, max(most[at[0]], count)
	}
	for i := range is {
		if is[i] == ofOthers && mains[i] <= mainsPart*most[i] {
			is[i] = ofAll
		}
	}
	return is
}

// openMP reports whether a module is an OpenMP runtime.
func openMP(p *profile.Profile, module int) bool {
	if module < 0 || module >= len(p.Modules) {
		return false
	}
	name := path.Base(p.Modules[module].Path)
	for _, runtime := range []string{"libgomp", "libomp", "libiomp"} {
		if strings.HasPrefix(name, runtime+".") || strings.HasPrefix(name, runtime+"5.") {
			return true
		}
	}
	return false
}

// handedOut reports whether OpenMP's runtime is known to give the work of a region to
// any thread.
func (c *Chance) handedOut(region int) bool {
	return c.p.Regions[region].Dynamic || c.tasks[region] != none
}

// Tasks reports whether a region outside loops is OpenMP tasks.
func (c *Chance) Tasks(region int) bool { return c.tasks[region] != none }

// FirstTouch is the part whose work touched a page first, and whether another thread
// does that in the next run: the page is then on any node that takes part.
func (c *Chance) FirstTouch(page int) (Part, bool) {
	pg := &c.p.Pages[page]
	if pg.Region < 0 || pg.Home < 0 || pg.Thread < 0 {
		return Part{}, false
	}
	if pg.Serial || c.p.Threads[pg.Thread].Rank == 0 && c.p.Regions[pg.Region].Kind != profile.Loop && c.tasks[pg.Region] != ofAll {
		return Part{}, false
	}
	part := Part{pg.Region, c.Group[pg.Object]}
	share, is := c.repeat[part]
	return part, is && share < 0.5
}
