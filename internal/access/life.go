package access

import (
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Lives tells which pages of p are one: life[i] is the index of the page that
// page i belongs to, mostly i itself. A page that was read before its first
// write is in the profile twice, without a home (the kernel's zero page) and
// then with one; the first belongs to the second. Pages that lost a home and
// got another stay apart.
func Lives(p *profile.Profile) (life []int) {
	type key struct{ object, index int }
	unhomed := make(map[key]int) // to the index of the page with a home, or -1
	life = make([]int, len(p.Pages))
	for i := range p.Pages {
		life[i] = i
		if g := &p.Pages[i]; g.Home == topo.Unknown {
			unhomed[key{g.Object, g.Index}] = -1
		}
	}
	if len(unhomed) == 0 {
		return life
	}
	for i := range p.Pages {
		if g := &p.Pages[i]; g.Home != topo.Unknown {
			k := key{g.Object, g.Index}
			if j, there := unhomed[k]; there && j < 0 {
				unhomed[k] = i
			}
		}
	}
	for i := range p.Pages {
		if g := &p.Pages[i]; g.Home == topo.Unknown {
			if j := unhomed[key{g.Object, g.Index}]; j >= 0 {
				life[i] = j
			}
		}
	}
	return life
}
