package access

import (
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// pageOf is a page of an object.
type pageOf struct{ object, index int }

// Lives tells which pages of p are one: life[i] is the index of the page that
// page i belongs to, mostly i itself. A page that was read before its first
// write is in the profile twice, without a home (the kernel's zero page) and
// then with one; the first belongs to the second. Pages that lost a home and
// got another stay apart where every access was seen, since then it is other memory;
// of samples, where the kernel may have moved it, it is one page.
func Lives(p *profile.Profile) (life []int) {
	if p.Run.Source != "emulate" {
		return sampledLives(p)
	}
	unhomed := make(map[pageOf]int) // to the index of the page with a home, or -1
	life = make([]int, len(p.Pages))
	for i := range p.Pages {
		life[i] = i
		if g := &p.Pages[i]; g.Home == topo.Unknown {
			unhomed[pageOf{g.Object, g.Index}] = -1
		}
	}
	if len(unhomed) == 0 {
		return life
	}
	for i := range p.Pages {
		if g := &p.Pages[i]; g.Home != topo.Unknown {
			k := pageOf{g.Object, g.Index}
			if j, there := unhomed[k]; there && j < 0 {
				unhomed[k] = i
			}
		}
	}
	for i := range p.Pages {
		if g := &p.Pages[i]; g.Home == topo.Unknown {
			if j := unhomed[pageOf{g.Object, g.Index}]; j >= 0 {
				life[i] = j
			}
		}
	}
	return life
}

// sampledLives is Lives for samples: the first entry of a page with a home is the page.
func sampledLives(p *profile.Profile) (life []int) {
	first := make(map[pageOf]int, len(p.Pages))
	life = make([]int, len(p.Pages))
	for i := range p.Pages {
		g := &p.Pages[i]
		k := pageOf{g.Object, g.Index}
		if j, there := first[k]; !there || p.Pages[j].Home == topo.Unknown && g.Home != topo.Unknown {
			first[k] = i
		}
	}
	for i := range p.Pages {
		life[i] = first[pageOf{p.Pages[i].Object, p.Pages[i].Index}]
	}
	return life
}
