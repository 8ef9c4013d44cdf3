package classify

import (
	"cmp"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// SerialInit is one finding of the most common fault: pages of an object that
// serial code touches first, so that they all lie on the main thread's node,
// and that threads of other nodes then use.
type SerialInit struct {
	// Group is the key of the pages, as given to FindSerialInit.
	Group int
	// Place, Region and Thread are of the first touch: indices into the
	// profile's slices of these names, Place and Region -1 if not known.
	Place, Region, Thread int
	// Touched is the pages that were touched first there and lie on that thread's
	// node. Used is those of them that parallel code of another node uses, of
	// which no node uses Even clearly most.
	Touched, Used, Even Share
	// Remote is the DRAM accesses to Used that were remote.
	Remote uint64
	// Avoidable is how many fewer there are with each page on the node that uses
	// it most in parallel.
	Avoidable uint64
	// Nodes is how many nodes use Touched in parallel.
	Nodes int
}

// FindSerialInit returns the findings, those that cost most first. group(i) is
// the object, or group of objects, of page i; pages with a negative group are
// left out.
func FindSerialInit(p *profile.Profile, pages []Page, uses *Uses, group func(i int) int) []SerialInit {
	all, parallel := uses.All, uses.Parallel
	type key struct{ group, place, region, thread int }
	type finding struct {
		SerialInit
		users []bool // by node
	}
	found := make(map[key]*finding)
	var f *finding // of the latest page: that of the next is most often the same
	var last key
	for i := range pages {
		g, x := &p.Pages[i], &pages[i]
		k := key{group(i), g.Place, g.Region, g.Thread}
		if k.group < 0 || x.Part || x.Class == Private || !x.SerialInit || g.Home != p.Threads[g.Thread].Node {
			continue
		}
		if f == nil || k != last {
			if f = found[k]; f == nil {
				f = &finding{SerialInit{Group: k.group, Place: g.Place, Region: g.Region, Thread: g.Thread}, make([]bool, all.Nodes)}
				found[k] = f
			}
			last = k
		}
		f.Touched.add(x)
		for n, c := range parallel.Page(i) {
			f.users[n] = f.users[n] || c > 0
		}
		f.use(x, all.Page(i), parallel, i, g.Home)
	}
	list := make([]SerialInit, 0, len(found))
	for _, f := range found {
		if f.Used.Pages == 0 {
			continue // nobody elsewhere uses them
		}
		for _, u := range f.users {
			if u {
				f.Nodes++
			}
		}
		list = append(list, f.SerialInit)
	}
	slices.SortFunc(list, func(a, b SerialInit) int {
		return cmp.Or(cmp.Compare(b.Avoidable, a.Avoidable), cmp.Compare(b.Remote, a.Remote),
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Thread, b.Thread))
	})
	return list
}

// use adds page i with class x, if parallel code of other nodes than its home
// uses it.
func (f *SerialInit) use(x *Page, all []uint64, parallel access.Use, i int, home topo.NodeID) {
	best, _, used := parallel.Best(i, home)
	if used == parallel.Page(i)[home] {
		return
	}
	f.Used.add(x)
	if x.Even {
		f.Even.add(x)
	}
	here, there := all[home], all[best]
	f.Remote += sum(all) - here
	if there > here {
		f.Avoidable += there - here
	}
}

func sum(list []uint64) (n uint64) {
	for _, x := range list {
		n += x
	}
	return n
}
