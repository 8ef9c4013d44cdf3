package profile

import (
	"cmp"
	"fmt"
	"math"

	"numaopt/internal/ident"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// maxIndex bounds page numbers, so that offsets in bytes fit an int64.
const maxIndex = 1 << 50

// Check returns the first thing that is wrong with p: every index refers to
// something or is -1 where that is allowed, every kind is known, sizes and page
// numbers agree, and the counts can be added up.
func (p *Profile) Check() error {
	for _, check := range []func(*Profile) error{
		checkRun, checkCode, checkObjects, checkRegions, checkThreads, checkPages, checkRows, checkLatencies, checkLines, checkCodeUses, checkIntervals,
	} {
		if err := check(p); err != nil {
			return err
		}
	}
	return nil
}

func checkRun(p *Profile) error {
	if err := p.Run.Topology.Check(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if p.Run.Period == 0 {
		return fmt.Errorf("run: the period is 0, want 1 or more")
	}
	return nil
}

// within reports an index i that is outside 0..n-1 and not one of the allowed
// negative values down to least.
func within(what string, entry, i, least, n int, of string) error {
	if i < least || i >= n {
		return fmt.Errorf("%s %d: %s %d is outside %d..%d", what, entry, of, i, least, n-1)
	}
	return nil
}

func checkCode(p *Profile) error {
	for i, s := range p.Sites {
		for _, f := range s.Frames {
			if err := within("site", i, f.Module, -1, len(p.Modules), "module"); err != nil {
				return err
			}
		}
	}
	for _, list := range []struct {
		what string
		code []ident.Code
	}{{"place", p.Places}, {"code", p.Codes}} {
		for i, c := range list.code {
			if err := within(list.what, i, c.Module, -1, len(p.Modules), "module"); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkObjects(p *Profile) error {
	for i, o := range p.Objects {
		switch o.Kind {
		case Heap, Small, Global, Mapping, Stack, Image, Unknown:
		default:
			return fmt.Errorf("object %d: unknown kind %q", i, o.Kind)
		}
		if err := within("object", i, o.Site, -1, len(p.Sites), "site"); err != nil {
			return err
		}
		if err := within("object", i, o.Module, -1, len(p.Modules), "module"); err != nil {
			return err
		}
		if o.Bytes < 0 || o.Bytes > maxIndex*units.PageSize {
			return fmt.Errorf("object %d: %d bytes", i, o.Bytes)
		}
		if o.Head < 0 || o.Head >= units.PageSize {
			return fmt.Errorf("object %d: head %d is not inside a page", i, o.Head)
		}
		if o.Rank < -1 || o.Ordinal < -1 {
			return fmt.Errorf("object %d: rank %d, ordinal %d", i, o.Rank, o.Ordinal)
		}
	}
	return nil
}

func checkRegions(p *Profile) error {
	for i, r := range p.Regions {
		switch r.Kind {
		case Loop, Function, Serial:
		default:
			return fmt.Errorf("region %d: unknown kind %q", i, r.Kind)
		}
		if err := within("region", i, r.Code.Module, -1, len(p.Modules), "module"); err != nil {
			return err
		}
		if r.Site.Offset == 0 {
			continue
		}
		if err := within("region", i, r.Site.Module, -1, len(p.Modules), "site's module"); err != nil {
			return err
		}
	}
	return nil
}

func checkThreads(p *Profile) error {
	for i, t := range p.Threads {
		if t.Rank < 0 {
			return fmt.Errorf("thread %d: rank %d", i, t.Rank)
		}
		if err := within("thread", i, int(t.Node), 0, len(p.Run.Topology.Nodes), "node"); err != nil {
			return err
		}
	}
	return nil
}

func checkPages(p *Profile) error {
	for i := range p.Pages {
		g := &p.Pages[i]
		for _, x := range []struct {
			i, least, n int
			of          string
		}{
			{g.Object, 0, len(p.Objects), "object"},
			{int(g.Home), int(topo.Unknown), len(p.Run.Topology.Nodes), "home"},
			{g.Thread, -1, len(p.Threads), "thread"},
			{g.Region, -1, len(p.Regions), "region"},
			{g.Place, -1, len(p.Places), "place"},
			{g.Index, 0, p.maxPage(g.Object), "index"},
		} {
			if err := within("page", i, x.i, x.least, x.n, x.of); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxPage returns the number of pages that object o can have. Stacks grow, small
// allocations of one site come and go, and of the unknown nobody knows.
func (p *Profile) maxPage(o int) int {
	if o < 0 || o >= len(p.Objects) {
		return 0
	}
	switch x := &p.Objects[o]; x.Kind {
	case Heap, Global, Mapping:
		return x.Pages()
	}
	return maxIndex
}

func checkRows(p *Profile) error {
	var count, latency uint64
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Page < 0 || int(r.Page) >= len(p.Pages) {
			return within("row", i, int(r.Page), 0, len(p.Pages), "page")
		}
		if r.Thread < 0 || int(r.Thread) >= len(p.Threads) {
			return within("row", i, int(r.Thread), 0, len(p.Threads), "thread")
		}
		if r.Region < 0 || int(r.Region) >= len(p.Regions) {
			return within("row", i, int(r.Region), 0, len(p.Regions), "region")
		}
		if r.Op > Store || r.Level > DRAM {
			return fmt.Errorf("row %d: operation %d, level %d", i, r.Op, r.Level)
		}
		if r.First > r.Last || r.Last >= SweepParts {
			return fmt.Errorf("row %d: from part %d to part %d of a sweep, which has %d", i, r.First, r.Last, SweepParts)
		}
		if r.Count > math.MaxInt64-count || r.Latency > math.MaxInt64-latency {
			return fmt.Errorf("row %d: the counts up to here add up to more than %d", i, int64(math.MaxInt64))
		}
		count += r.Count
		latency += r.Latency
	}
	return nil
}

func checkLatencies(p *Profile) error {
	var accesses, cycles uint64
	nodes := len(p.Run.Topology.Nodes)
	for i := range p.Latencies {
		l := &p.Latencies[i]
		for _, x := range []struct {
			i, least, n int
			of          string
		}{
			{int(l.Object), 0, len(p.Objects), "object"},
			{int(l.Region), 0, len(p.Regions), "region"},
			{int(l.Served), 0, NumServed, "level"},
			{int(l.From), 0, nodes, "node"},
			{int(l.To), int(topo.Unknown), nodes, "home"},
			{int(l.Bucket), 0, Buckets, "bucket"},
		} {
			if err := within("latency", i, x.i, x.least, x.n, x.of); err != nil {
				return err
			}
		}
		if l.Samples > l.Accesses || l.Accesses > math.MaxInt64-accesses || l.Cycles > math.MaxInt64-cycles {
			return fmt.Errorf("latency %d: %d samples of %d accesses, %d cycles", i, l.Samples, l.Accesses, l.Cycles)
		}
		accesses += l.Accesses
		cycles += l.Cycles
	}
	return nil
}

func checkLines(p *Profile) error {
	for i := range p.Lines {
		l := &p.Lines[i]
		for _, x := range []struct {
			i, least, n int
			of          string
		}{
			{int(l.Object), 0, len(p.Objects), "object"},
			{int(l.Node), 0, len(p.Run.Topology.Nodes), "node"},
			{int(l.Region), 0, len(p.Regions), "region"},
			{int(l.Place), -1, len(p.Places), "place"},
			{int(l.Offset / int64(units.PageSize)), 0, p.maxPage(int(l.Object)), "page"},
		} {
			if err := within("line", i, x.i, x.least, x.n, x.of); err != nil {
				return err
			}
		}
		if l.Offset < 0 || l.Offset%LineBytes != 0 {
			return fmt.Errorf("line %d: offset %d is not that of a line", i, l.Offset)
		}
		if i > 0 && cmp.Or(cmp.Compare(p.Lines[i-1].Object, l.Object), cmp.Compare(p.Lines[i-1].Offset, l.Offset), cmp.Compare(p.Lines[i-1].Node, l.Node)) > 0 {
			return fmt.Errorf("line %d: not in the order of objects, offsets and nodes", i)
		}
		if l.HITM > l.Loads || l.Loads > math.MaxInt32 || l.Stores > math.MaxInt32 {
			return fmt.Errorf("line %d: %d loads, %d of them HITM, and %d stores", i, l.Loads, l.HITM, l.Stores)
		}
	}
	return nil
}

func checkCodeUses(p *Profile) error {
	var sum, latency uint64
	for i := range p.CodeUses {
		u := &p.CodeUses[i]
		for _, x := range []struct {
			i, n int
			of   string
		}{
			{int(u.Code), len(p.Codes), "code"},
			{int(u.Object), len(p.Objects), "object"},
			{int(u.Region), len(p.Regions), "region"},
			{int(u.Op), int(Store) + 1, "operation"},
		} {
			if err := within("use of code", i, x.i, 0, x.n, x.of); err != nil {
				return err
			}
		}
		for _, n := range []uint64{u.Local, u.Remote, u.Unknown} {
			if n > math.MaxInt64-sum {
				return fmt.Errorf("use of code %d: the counts up to here add up to more than %d", i, int64(math.MaxInt64))
			}
			sum += n
		}
		if u.Loads > u.Total() || u.Latency > math.MaxInt64-latency {
			return fmt.Errorf("use of code %d: %d loads of %d accesses, %d cycles", i, u.Loads, u.Total(), u.Latency)
		}
		latency += u.Latency
		if i > 0 && compareCodeUses(p.CodeUses[i-1], *u) >= 0 {
			return fmt.Errorf("use of code %d: twice, or not in the order of code, object, region and operation", i)
		}
	}
	return nil
}

func compareCodeUses(a, b CodeUse) int {
	return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Op, b.Op))
}

func checkIntervals(p *Profile) error {
	if len(p.Intervals) > 0 && (p.Run.IntervalWidth == 0 || p.Run.IntervalWidth > math.MaxInt64/MostIntervals) {
		return fmt.Errorf("run: parts of length %d", p.Run.IntervalWidth)
	}
	var count, work uint64
	for i := range p.Intervals {
		v := &p.Intervals[i]
		for _, x := range []struct {
			i, least, n int
			of          string
		}{
			{int(v.At), 0, MostIntervals, "part"},
			{int(v.Thread), 0, len(p.Threads), "thread"},
			{int(v.Region), 0, len(p.Regions), "region"},
			{int(v.Home), int(topo.Unknown), len(p.Run.Topology.Nodes), "home"},
		} {
			if err := within("interval", i, x.i, x.least, x.n, x.of); err != nil {
				return err
			}
		}
		if v.Count > math.MaxInt64-count || v.Work > math.MaxInt64-work {
			return fmt.Errorf("interval %d: the counts up to here add up to more than %d", i, int64(math.MaxInt64))
		}
		count += v.Count
		work += v.Work
		if i > 0 && compareIntervals(p.Intervals[i-1], *v) >= 0 {
			return fmt.Errorf("interval %d: twice, or not in the order of thread, part, region and home", i)
		}
	}
	return nil
}

func compareIntervals(a, b Interval) int {
	switch { // there are many, and cmp.Or compares all fields of each
	case a.Thread != b.Thread:
		return cmp.Compare(a.Thread, b.Thread)
	case a.At != b.At:
		return cmp.Compare(a.At, b.At)
	case a.Region != b.Region:
		return cmp.Compare(a.Region, b.Region)
	}
	return cmp.Compare(a.Home, b.Home)
}

// Pages returns the number of base pages that the object's Bytes reach into,
// counting from the page of its first byte; at least 1.
func (o *Object) Pages() int {
	return max(1, units.Bytes(int64(o.Head)+o.Bytes).Pages())
}

// Private reports whether objects of this kind are private in the sense of
// CGO'12 §2.2: stacks and the program's image, excluded from sharing and placement.
func (k Kind) Private() bool { return k == Stack || k == Image }
