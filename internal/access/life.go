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
	homed := make(map[key]int, len(p.Pages))
	life = make([]int, len(p.Pages))
	for i := range p.Pages {
		life[i] = i
		g := &p.Pages[i]
		k := key{g.Object, g.Index}
		if _, there := homed[k]; g.Home != topo.Unknown && !there {
			homed[k] = i
		}
	}
	for i := range p.Pages {
		g := &p.Pages[i]
		if j, there := homed[key{g.Object, g.Index}]; there && g.Home == topo.Unknown {
			life[i] = j
		}
	}
	return life
}
