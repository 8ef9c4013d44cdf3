package sample

import (
	"runtime"
	"sync"
	"sync/atomic"

	"numaopt/internal/arena"
)

// portion is what one shard of the cells adds to a table.
type portion struct {
	t       *Table
	pages   []page
	threads map[threadCPU]bool // that have cells
	late    latencies          // of its late cells

	accesses, moved, disagree uint64

	again int   // pages that had faults after their first
	looks looks // what the faults of its pages are counted otherwise than the workers did

	votes []uint32 // of a page, two for each node: see home
}

// divided makes the table's pages, as many shards at a time as there are workers.
func (t *Table) divided(workers []*worker, settled func(arena.Region) arena.Region, faults map[pageKey][]fault) []*portion {
	out := make([]*portion, shards)
	var (
		wait  sync.WaitGroup
		taken atomic.Int32
		parts [shards][]cell
	)
	for _, w := range workers {
		w.cells.settle()
	}
	for range workers {
		wait.Go(func() {
			var by sorter
			for i := int(taken.Add(1)) - 1; i < shards; i = int(taken.Add(1)) - 1 {
				for _, w := range workers {
					w.cells.flush(i)
				}
				parts[i] = t.r.cells[i].all(uint32(t.PID), settled, &by)
				out[i] = t.portion(parts[i], faults)
			}
		})
	}
	wait.Wait()
	for i, o := range out {
		t.blocks += len(parts[i])
		runtime.AddCleanup(t, freeCells, parts[i])
		t.accesses += o.accesses
		t.r.stats.Moved += o.moved
		t.r.stats.Disagree += o.disagree
		t.again += o.again
		t.looks.addAll(o.looks)
	}
	t.pages = joined(out)
	return out
}

// portion makes pages of cells, with their homes.
func (t *Table) portion(cells []cell, faults map[pageKey][]fault) *portion {
	o := &portion{t: t, looks: looks{}, threads: map[threadCPU]bool{}, votes: make([]uint32, 2*len(t.r.opt.Machine.Nodes))}
	var latest [256]threadCPU
	for len(cells) > 0 {
		first, n := &cells[0], 0
		for ; n < len(cells) && cells[n].number == first.number && cells[n].object == first.object; n++ {
			c := &cells[n]
			o.accesses += c.count
			k := threadCPU{c.tid, c.how.cpu()}
			if last := &latest[k.place()]; *last != k {
				*last = k
				o.threads[k] = true
			}
		}
		o.group(page{object: first.object, number: first.number, cells: cells[:n:n]}, faults)
		cells = cells[n:]
	}
	return o
}

// group adds a page, once for each home that it had.
func (o *portion) group(p page, faults map[pageKey][]fault) {
	own := faults[pageKey{uint32(o.t.PID), p.object, p.number}]
	if len(own) > 0 {
		p.fault = &own[0]
	}
	p.home = o.home(&p)
	o.leaveOut(&p)
	known := len(o.pages)
	o.pages = o.split(o.pages, p, own)
	for i := range o.pages[known:] {
		o.t.late(&o.pages[known+i], &o.late)
	}
}

// joined is the pages of all portions, by object and number.
func joined(portions []*portion) []page {
	n := 0
	for _, o := range portions {
		n += len(o.pages)
	}
	all := make([]page, 0, n)
	for _, o := range portions {
		all = append(all, o.pages...)
	}
	var by sorter
	refs := by.of(len(all))
	for i := range all {
		refs[i] = ref{number: all[i].number, object: uint32(all[i].object), at: uint32(i)}
	}
	out := make([]page, len(all))
	for i, r := range by.inOrder(refs) {
		out[i] = all[r.at]
	}
	return out
}

// home is the node that holds a page: by physical addresses, else by what the kernel
// told the runtime, else by what the processor said, else where its first fault was;
// -1 for none of them.
func (o *portion) home(p *page) int {
	t := o.t
	clear(o.votes)
	nodes := len(o.votes) / 2
	physical, said := o.votes[:nodes], o.votes[nodes:]
	for i := range p.cells {
		c := &p.cells[i]
		if h := c.how.home(); h >= 0 {
			physical[h] += c.samples
		}
		if !c.how.said() {
			continue
		}
		switch node := t.r.nodeOf[c.how.cpu()]; {
		case !c.how.remote():
			said[node] += c.samples
		case nodes == 2:
			said[1-node] += c.samples
		}
	}
	asked := -1
	if n, ok := t.asked[homeKey{p.number, p.object}]; ok && int(n) < nodes {
		asked = int(n)
	}
	home := -1
	for _, word := range [...]int{most(physical), asked, most(said)} {
		switch {
		case word < 0:
		case home < 0:
			home = word
		case home != word:
			o.disagree++
			return home
		}
	}
	if home < 0 && p.fault != nil {
		return int(t.r.nodeOf[p.fault.cpu])
	}
	return home
}

// most is the node with the most votes; -1 for no votes.
func most(votes []uint32) int {
	best := -1
	for n, v := range votes {
		if v > 0 && (best < 0 || v > votes[best]) {
			best = n
		}
	}
	return best
}
