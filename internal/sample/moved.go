package sample

import (
	"cmp"
	"slices"

	"numaopt/internal/arena"
)

// faultsOf is the faults of each page of a process, by time.
func faultsOf(workers []*worker, pid uint32, settled func(arena.Region) arena.Region) map[pageKey][]fault {
	out := map[pageKey][]fault{}
	for _, w := range workers {
		for _, f := range w.faults {
			if f.page.pid == pid {
				f.region = settled(f.region)
				out[f.page] = append(out[f.page], f)
			}
		}
		w.faults = nil
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b fault) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.tid, b.tid)) })
	}
	return out
}

// split appends to pages a page of each home that p had while it was sampled, by its physical
// addresses: an access is remote or not by where the page was then. Samples that do
// not tell are of the home that p had most. The first touch is of the earliest.
func (o *portion) split(pages []page, p page, faults []fault) []page {
	cells := p.cells
	home := func(c *cell) int {
		if h := c.how.home(); h >= 0 {
			return h
		}
		return p.home
	}
	i := 0
	for ; i < len(cells) && home(&cells[i]) == home(&cells[0]); i++ {
	}
	if i == len(cells) {
		return append(pages, p)
	}
	o.moved++
	slices.SortStableFunc(cells, func(a, b cell) int { return cmp.Compare(home(&a), home(&b)) })
	var out []page
	var earliest uint64
	first, from := 0, 0
	for i := range cells {
		c := &cells[i]
		if n := len(out); n == 0 || out[n-1].home != home(c) {
			out, from = append(out, page{object: p.object, number: p.number, home: home(c)}), i
		}
		out[len(out)-1].cells = cells[from : i+1]
		if i == 0 || c.first < earliest {
			earliest, first = c.first, len(out)-1
		}
	}
	out[first].fault = p.fault
	out[0], out[first] = out[first], out[0]
	o.before(out, faults)
	return append(pages, out...)
}

// migration is a fault that moved a page from one home to another. The kernel moves a page
// within the fault, and the fault that finds it on another node is the one that did.
type migration struct {
	fault    *fault
	from, to *page
}

// before counts each of the moves where it belongs: a fault stands for the accesses
// around it, and those before it were made where the page was before.
//
// Where the page has a user that stays, the ones after it are as many: every other such
// fault is counted there, so that shares of many pages come out right. Where users come
// and go all are counted before. Who comes is chance, and finds the page remote as often as
// anyone does; that the page is local to him afterwards is his own doing, and
// the next one has nothing of it.
func (o *portion) before(homes []page, faults []fault) {
	stays := o.stays(faults)
	for i, m := range moves(homes, faults) {
		at := m.from
		if stays && (m.to.number+uint64(i))%2 == 0 {
			at = m.to
		}
		at.late = append(at.late, *m.fault)
		o.looks.add(m.fault.time, 0, o.t.r.far(m.fault.cpu, at.home)-o.t.r.far(m.fault.cpu, m.fault.home))
	}
}

// stays reports whether the node of a page's fault is mostly that of the next one, too,
// without the first touch: all but one do so in a page that is used from one node, one of
// as many as there are nodes where users come and go.
func (o *portion) stays(faults []fault) bool {
	same, pairs := 0, 0
	for i := 2; i < len(faults); i++ {
		pairs++
		if o.t.r.nodeOf[faults[i].cpu] == o.t.r.nodeOf[faults[i-1].cpu] {
			same++
		}
	}
	return 2*same >= pairs
}

// moves takes the faults that moved a page out of its counts.
func moves(homes []page, faults []fault) (out []migration) {
	at := func(home int) *page {
		i := slices.IndexFunc(homes, func(p page) bool { return p.home == home })
		if i < 0 {
			return nil
		}
		return &homes[i]
	}
	var from *page
	for i := range faults {
		to := at(faults[i].home)
		if to == nil {
			continue
		}
		if from != nil && from != to {
			if c := to.cellOf(&faults[i]); c != nil {
				c.count--
				out = append(out, migration{&faults[i], from, to})
			}
		}
		from = to
	}
	return out
}

// cellOf is a cell of p that f is counted in.
func (p *page) cellOf(f *fault) *cell {
	for i := range p.cells {
		if c := &p.cells[i]; c.how.fault() && c.count > 0 && c.tid == f.tid && c.how.cpu() == f.cpu && c.region == f.region {
			return c
		}
	}
	return nil
}

// leaveOut takes the first fault of a page out of its counts if there are others. The
// first touch is kept as such; those that follow are samples of who uses the page, and
// it is none: it always comes, and is always local.
func (o *portion) leaveOut(p *page) {
	samples := uint32(0)
	for i := range p.cells {
		samples += p.cells[i].samples
	}
	if p.fault == nil {
		return
	}
	o.looks.add(p.fault.time, -1, -o.t.r.far(p.fault.cpu, p.fault.home))
	if samples < 2 {
		return
	}
	o.again++
	if c := p.cellOf(p.fault); c != nil {
		c.count--
		o.accesses--
	}
}
