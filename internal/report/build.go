package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"numaopt/internal/access"
	"numaopt/internal/classify"
	"numaopt/internal/latency"
	"numaopt/internal/profile"
	"numaopt/internal/shape"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Options restrict a report.
type Options struct {
	// Only, Objects and Threads (ranks) are what it is restricted to, see
	// access.Selection; empty is all.
	Only, Objects []string
	Threads       []int
	// Sort is the order of objects and loops, one of SortKeys; empty is the first.
	Sort string
	// PatternRows is how many patterns of use are enough, from the first objects on: to
	// find one takes longer than all else. 0 is all.
	PatternRows int
	// Shapes are the arrays behind objects by index, as far as known; see shape.Find.
	Shapes map[int]shape.Shape
	// Merged is by region the lines of the loops that gcc merged, see advice.Merged.
	Merged map[int][]int
}

// Selection is the part of a profile that the report is of.
func (o *Options) Selection() access.Selection {
	return access.Selection{Loops: o.Only, Objects: o.Objects, Threads: o.Threads, Variable: func(i int) string { return o.Shapes[i].Variable }}
}

// Build makes the report of p. The only error is a name of a loop, object or thread that
// p does not have.
func Build(p *profile.Profile, opt Options) (*Report, error) {
	q, err := access.Select(p, opt.Selection())
	if err != nil {
		return nil, err
	}
	b := &builder{p: q, all: p, merged: opt.Merged}
	b.groups, b.groupOf = access.Groups(q)
	together(
		func() { b.uses = classify.NewUses(q) },
		func() { b.total = access.Total(q); b.dealt() },
	)
	b.pages = classify.PagesOf(q, b.uses, classify.DefaultOptions())
	r := &Report{Version: Version, Only: append([]string{}, opt.Only...), OnlyObjects: opt.Objects, OnlyThreads: opt.Threads, Findings: []string{}, Warnings: []string{}}
	if err := checkSort(opt.Sort); err != nil {
		return nil, err
	}
	together(
		func() { b.totals(r); b.sharing(r) },
		func() { r.Objects = b.objects() },
		func() { r.Loops, r.Matrix = b.loops(), b.matrix() },
		func() { r.Threads, b.byThread = b.threads(), access.ByThread(b.all) },
		func() { r.Quality = quality(q) },
		func() { b.finder = classify.NewPatternFinder(q, b.groups, b.groupOf, opt.Shapes) },
		func() { r.FirstTouch = b.firstTouch() },
		func() { r.SerialInit = b.serialInit() },
		func() { r.Stuck = b.stuck() },
		func() { r.Latency, r.Lines, r.SourceLines = b.latency(), b.lines(), b.sourceLines() },
	)
	r.sort(opt.Sort)
	r.Unsought = b.findPatterns(r.Objects, opt.PatternRows)
	r.Run = run(&p.Run)
	if r.Verdict = verdict(r); r.Quality.Enough {
		r.Findings = findings(r)
	}
	r.Warnings = b.warnings(r)
	return r, nil
}

// together does what does not depend on each other.
func together(parts ...func()) {
	var wait sync.WaitGroup
	for _, part := range parts {
		wait.Go(part)
	}
	wait.Wait()
}

// builder holds what several sections need.
type builder struct {
	p, all *profile.Profile // restricted, and as recorded
	pages  []classify.Page
	uses   *classify.Uses
	finder *classify.PatternFinder
	// byThread is the traffic of all, by its threads.
	byThread []access.Traffic
	total    access.Traffic
	groups   []access.Group
	groupOf  []int // of each object
	// dealtTo and dealtBy are the DRAM accesses of work that is handed out at run
	// time, by group and by region; knownTo those of dealtTo of which OpenMP's
	// runtime says so, the others only look like it.
	dealtTo, dealtBy, knownTo []uint64
	merged                    map[int][]int // see Options
}

func (b *builder) dealt() {
	b.dealtTo, b.knownTo, b.dealtBy = make([]uint64, len(b.groups)), make([]uint64, len(b.groups)), make([]uint64, len(b.p.Regions))
	dram := func(r *profile.Row) bool { return r.Level == profile.DRAM }
	chance := classify.FindChance(b.p, nil, dram)
	for i := range b.p.Rows {
		if r := &b.p.Rows[i]; dram(r) && chance.Repeats(r) == 0 {
			b.dealtTo[b.group(int(r.Page))] += r.Count
			b.dealtBy[r.Region] += r.Count
			if chance.Evidence(int(r.Region)) == classify.Known {
				b.knownTo[b.group(int(r.Page))] += r.Count
			}
		}
	}
}

func (b *builder) group(page int) int { return b.groupOf[b.p.Pages[page].Object] }

func pct(part, whole uint64) Pct { return Pct(access.Pct(part, whole)) }

func one(int) int { return 0 }

func (b *builder) totals(r *Report) {
	t := b.total
	r.Accesses, r.DRAMAccesses = t.All.Total(), t.DRAM.Total()
	r.DRAM, r.All = flow(t.DRAM), flow(t.All)
	r.RemoteDRAM, r.RemoteAccess = Pct(t.DRAM.RemotePct()), Pct(t.All.RemotePct())
	if lo, hi := access.RemoteInterval(b.p, t.DRAM); b.p.Run.Period > 1 || lo < hi {
		r.RemoteDRAMCI = &[2]Pct{Pct(lo), Pct(hi)}
	}
	r.BestPlacement = pct(classify.BestRemote(b.p, b.pages, b.uses, 1, one)[0], t.DRAM.Known())
	r.Imbalance = Pct(access.NodeMatrix(b.p, true).Imbalance())
	r.Match, r.Coverage = Pct(access.MatchPct(b.p)), Pct(access.CoveragePct(b.all))
}

func flow(f access.Flow) Flow {
	return Flow{
		Local: f.Local, Remote: f.Remote, Unknown: f.Unknown,
		LocalPct: pct(f.Local, f.Total()), RemotePct: pct(f.Remote, f.Total()), UnknownPct: pct(f.Unknown, f.Total()),
	}
}

func (b *builder) sharing(r *Report) {
	s := classify.Sum(b.pages, 1, one)[0]
	all := s.All()
	of := func(part, whole classify.Share) (pages, accesses, dram Pct) {
		return pct(uint64(part.Pages), uint64(whole.Pages)), pct(part.Accesses, whole.Accesses), pct(part.DRAM, whole.DRAM)
	}
	x := Sharing{TouchedPages: all.Pages, TouchedBytes: int64(all.Bytes())}
	x.Pages.Private, x.Accesses.Private, x.DRAMAccesses.Private = of(s.Private, all)
	x.Pages.NonShared, x.Accesses.NonShared, x.DRAMAccesses.NonShared = of(s.NonShared, all)
	x.Pages.UniformlyShared, x.Accesses.UniformlyShared, x.DRAMAccesses.UniformlyShared = of(s.UniformlyShared, all)
	x.Shares = x.Pages // all pages are base pages: shares of bytes are shares of pages
	x.SingleThread, x.accessesSingle, x.dramSingle = of(s.OneThread, all)
	x.WithoutSerialInit, x.accessesWithout, x.dramWithout = of(minus(s.UniformlyShared, s.SerialOnly), all)
	x.EvenlyUsed, x.accessesEven, x.dramEven = of(s.Even, all)
	x.SerialInit, x.accessesSerialInit, x.dramSerialInit = of(s.SerialInit, all)
	r.Sharing = x

	perKind := classify.Sum(b.pages, 1, func(i int) int {
		if b.p.Objects[b.p.Pages[i].Object].Kind == profile.Small {
			return 0
		}
		return -1
	})[0].All()
	r.Small.Bytes, _, r.Small.DRAM = of(perKind, all)
	for _, g := range b.groups {
		if g.Kind == profile.Small {
			r.Small.Sites++
		}
	}
	r.Small.Remote = Pct(access.By(b.p, 1, func(row *profile.Row) int {
		if b.p.Objects[b.p.Pages[row.Page].Object].Kind == profile.Small {
			return 0
		}
		return -1
	})[0].DRAM.RemotePct())
}

func minus(a, b classify.Share) classify.Share {
	return classify.Share{Pages: a.Pages - b.Pages, Accesses: a.Accesses - b.Accesses, DRAM: a.DRAM - b.DRAM}
}

// objects lists the groups that were touched: those whose remote loads cost most first,
// where that is known, then those with most DRAM accesses.
func (b *builder) objects() []Object {
	n, nodes := len(b.groups), len(b.p.Run.Topology.Nodes)
	traffic := access.By(b.p, n, func(r *profile.Row) int { return b.group(int(r.Page)) })
	sharing := classify.Sum(b.pages, n, b.group)
	best := classify.BestRemote(b.p, b.pages, b.uses, n, b.group)
	byNode := access.By(b.p, n*nodes, func(r *profile.Row) int { return b.group(int(r.Page))*nodes + int(b.p.Threads[r.Thread].Node) })
	homes := make([]int, n*(nodes+1)) // the last is unknown
	costs := latency.Costs(b.p, n, b.loaded)
	for i := range b.p.Pages {
		if b.pages[i].Part {
			continue
		}
		h := int(b.p.Pages[i].Home)
		if h == int(topo.Unknown) {
			h = nodes
		}
		homes[b.group(i)*(nodes+1)+h]++
	}
	list := []Object{}
	for i := range b.groups {
		s, t := &sharing[i], &traffic[i]
		all := s.All()
		if all.Pages == 0 {
			continue
		}
		share := func(x classify.Share) Pct { return pct(uint64(x.Pages), uint64(all.Pages)) }
		o := Object{
			Name: b.groups[i].Name, Kind: string(b.groups[i].Kind), Bytes: int64(b.groups[i].Bytes),
			Instances: len(b.groups[i].Objects), TouchedBytes: int64(all.Bytes()),
			Accesses: t.All.Total(), DRAMAccesses: t.DRAM.Total(), DRAMPct: pct(t.DRAM.Total(), b.total.DRAM.Total()),
			RemoteDRAM: Pct(t.DRAM.RemotePct()), RemoteAccess: Pct(t.All.RemotePct()),
			BestPlacement: pct(best[i], t.DRAM.Known()), Dynamic: pct(b.dealtTo[i], t.DRAM.Total()), Store: pct(t.Stores, t.All.Total()),
			NonShared: share(s.NonShared), SingleThread: share(s.OneThread), UniformlyShared: share(s.UniformlyShared),
			WithoutSerialInit: share(minus(s.UniformlyShared, s.SerialOnly)), EvenlyUsed: share(s.Even),
			HomePages: homes[i*(nodes+1) : i*(nodes+1)+nodes], UnknownPages: homes[i*(nodes+1)+nodes],
		}
		if o.Bytes == 0 {
			o.Bytes = o.TouchedBytes
		}
		for _, k := range b.groups[i].Objects {
			o.Placed = o.Placed || b.p.Objects[k].Placed
		}
		o.known, o.remote = pct(b.knownTo[i], t.DRAM.Total()), t.DRAM.Remote
		if costs != nil {
			o.cost = costs[i]
		}
		for k := range nodes {
			o.DRAMByNode = append(o.DRAMByNode, byNode[i*nodes+k].DRAM.Total())
		}
		b.source(&o, &b.p.Objects[b.groups[i].Objects[0]])
		o.group = i
		list = append(list, o)
	}
	slices.SortStableFunc(list, func(a, b Object) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(b.DRAMAccesses, a.DRAMAccesses), cmp.Compare(b.Accesses, a.Accesses), cmp.Compare(b.TouchedBytes, a.TouchedBytes))
	})
	return list
}

// source says where the objects of a group are made.
func (b *builder) source(o *Object, x *profile.Object) {
	if x.Kind.Private() || x.Kind == profile.Unknown {
		return
	}
	o.Symbol, o.File = x.Symbol, x.File
	if x.Site >= 0 {
		for _, f := range b.p.Sites[x.Site].Frames {
			o.Stack = append(o.Stack, access.CodeName(b.p, f))
		}
	}
}

// loops lists the regions that made accesses, those with most DRAM accesses first.
func (b *builder) loops() []Loop {
	threads := b.threadsOf()
	list := []Loop{}
	for i, t := range access.ByRegion(b.p) {
		x := &b.p.Regions[i]
		if t.All.Total() == 0 {
			continue
		}
		list = append(list, Loop{
			Name: b.regionName(i), Kind: string(x.Kind), Function: x.Function, File: x.File, Line: x.Line,
			Symbol: x.Code.Symbol, Thread: x.Thread, Merged: b.merged[i], Entries: x.Entries, Dynamic: x.Dynamic || 2*b.dealtBy[i] > t.DRAM.Total(), Threads: threads[i],
			Accesses: t.All.Total(), DRAMAccesses: t.DRAM.Total(), DRAMPct: pct(t.DRAM.Total(), b.total.DRAM.Total()),
			RemoteDRAM: Pct(t.DRAM.RemotePct()), RemoteAccess: Pct(t.All.RemotePct()),
			remote: t.DRAM.Remote, dealt: pct(b.dealtBy[i], b.total.DRAM.Total()),
		})
	}
	slices.SortStableFunc(list, func(a, b Loop) int {
		return cmp.Or(cmp.Compare(b.DRAMAccesses, a.DRAMAccesses), cmp.Compare(b.Accesses, a.Accesses))
	})
	return list
}

// threadsOf counts the ranks that ran each region.
func (b *builder) threadsOf() []int {
	n := len(b.p.Threads)
	ran := make([]bool, len(b.p.Regions)*n)
	for i := range b.p.Rows {
		ran[int(b.p.Rows[i].Region)*n+int(b.p.Rows[i].Thread)] = true
	}
	counts := make([]int, len(b.p.Regions))
	for i := range counts {
		ranks := make(map[int]bool)
		for k, is := range ran[i*n : (i+1)*n] {
			if is {
				ranks[b.p.Threads[k].Rank] = true
			}
		}
		counts[i] = len(ranks)
	}
	return counts
}

func (b *builder) regionName(i int) string {
	if i < 0 {
		return ""
	}
	return access.RegionName(b.p, i)
}

func (b *builder) threads() []Thread {
	list := []Thread{}
	for i, t := range access.ByThread(b.p) {
		x := &b.p.Threads[i]
		list = append(list, Thread{
			Rank: x.Rank, CPU: x.CPU, Node: int(x.Node), Pinned: x.Pinned,
			Accesses: t.All.Total(), DRAMAccesses: t.DRAM.Total(), DRAMPct: pct(t.DRAM.Total(), b.total.DRAM.Total()),
			RemoteDRAM: Pct(t.DRAM.RemotePct()), RemoteAccess: Pct(t.All.RemotePct()),
		})
	}
	slices.SortStableFunc(list, func(a, b Thread) int { return cmp.Compare(a.Rank, b.Rank) })
	return list
}

func (b *builder) matrix() Matrix {
	rows := func(m access.Matrix) [][]uint64 {
		var out [][]uint64
		for i := range m.Nodes {
			out = append(out, m.Reach[i*m.Nodes:(i+1)*m.Nodes])
		}
		return out
	}
	dram, all := access.NodeMatrix(b.p, true), access.NodeMatrix(b.p, false)
	return Matrix{DRAM: rows(dram), DRAMUnknown: dram.Unknown, All: rows(all), AllUnknown: all.Unknown}
}

// firstTouch lists who touched which objects first from where, most pages first;
// private pages are left out, as nothing can be done about them.
func (b *builder) firstTouch() []FirstTouch {
	type key struct {
		group, place, region int
		serial               bool
	}
	nodes := len(b.p.Run.Topology.Nodes)
	index := make(map[key]int)
	var list []FirstTouch
	var ranks []map[int]bool
	of := make([]int, len(b.p.Pages))
	var last key // of the page before, which is most often the next one's
	lastAt := -1
	for i := range b.p.Pages {
		g := &b.p.Pages[i]
		of[i] = -1
		if b.pages[i].Part || b.pages[i].Class == classify.Private || g.Thread < 0 {
			continue
		}
		k := key{b.group(i), g.Place, g.Region, b.pages[i].SerialInit}
		at, ok := lastAt, k == last && lastAt >= 0
		if !ok {
			at, ok = index[k]
		}
		if !ok {
			at = len(list)
			index[k] = at
			list = append(list, FirstTouch{
				Object: b.groups[k.group].Name, Place: b.place(g.Place, g.Region), Loop: b.regionName(g.Region),
				Serial: k.serial, HomePages: make([]int, nodes),
			})
			ranks = append(ranks, make(map[int]bool))
		}
		last, lastAt = k, at
		of[i] = at
		list[at].Pages++
		list[at].Bytes += units.PageSize
		ranks[at][b.p.Threads[g.Thread].Rank] = true
		if g.Home != topo.Unknown {
			list[at].HomePages[g.Home]++
		}
	}
	for i, t := range access.By(b.p, len(list), func(r *profile.Row) int { return of[r.Page] }) {
		list[i].DRAM, list[i].RemoteDRAM, list[i].Ranks = t.DRAM.Total(), Pct(t.DRAM.RemotePct()), rankList(ranks[i])
	}
	slices.SortStableFunc(list, func(a, b FirstTouch) int {
		return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(b.DRAM, a.DRAM))
	})
	return append([]FirstTouch{}, list...)
}

// place names the code of a first touch, or failing that its region.
func (b *builder) place(place, region int) string {
	if place >= 0 {
		if s := access.CodeName(b.p, b.p.Places[place]); s != "?" {
			return s
		}
	}
	return b.regionName(region)
}

func rankList(set map[int]bool) string {
	var ranks []int
	for r := range set {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	return topo.FormatList(ranks)
}

func (b *builder) serialInit() []SerialInit {
	found := classify.FindSerialInit(b.p, b.pages, b.uses, b.group)
	list := make([]SerialInit, 0, len(found))
	for _, f := range found {
		list = append(list, SerialInit{
			Object: b.groups[f.Group].Name, Place: b.place(f.Place, f.Region),
			Rank: b.p.Threads[f.Thread].Rank, Node: int(b.p.Threads[f.Thread].Node),
			FirstTouched: int64(f.Touched.Bytes()), Pages: f.Used.Pages, Bytes: int64(f.Used.Bytes()), UserNodes: f.Nodes,
			Remote: f.Remote, Avoidable: f.Avoidable, AvoidablePct: pct(f.Avoidable, b.total.DRAM.Known()),
			EvenlyUsed: int64(f.Even.Bytes()),
		})
	}
	return list
}

// stuck lists what page placement cannot help.
func (b *builder) stuck() []Stuck {
	list := []Stuck{}
	for _, s := range classify.FindStuck(b.p, b.pages, b.uses, b.group) {
		x := Stuck{
			Object: b.groups[s.Group].Name, Remote: s.Remote, RemotePct: pct(s.Remote, b.total.DRAM.Known()),
			ConflictPct: pct(s.Conflict, s.Remote), EvenlyUsed: int64(s.Even.Bytes()), Loops: []StuckLoop{},
		}
		for _, r := range s.Regions {
			x.Loops = append(x.Loops, StuckLoop{b.regionName(r.Region), r.Remote})
		}
		list = append(list, x)
	}
	return list
}

func quality(p *profile.Profile) Quality {
	q := Quality{
		Exact: p.Run.Period <= 1, Period: p.Run.Period, Enough: true,
		DRAMSamples: access.Samples(p, access.Total(p).DRAM.Total()),
	}
	if err := access.Support(p); err != nil {
		q.Enough, q.Reason = false, err.Error()
	}
	return q
}

func run(r *profile.Run) Run {
	return Run{
		Source: r.Source, Command: append([]string{}, r.Command...), Dir: r.Dir, Host: r.Host, Version: r.Version,
		Start: r.Start.UTC().Format(time.RFC3339), Elapsed: Pct(r.Elapsed.Seconds()),
		Topology: r.Topology.String(), Nodes: len(r.Topology.Nodes), CPUs: r.Topology.NumCPUs(),
		Bind: r.Bind, Pinned: append([]string{}, r.Pinned...),
		Cache:  Cache{LineBytes: r.Cache.LineBytes, L1: level(r.Cache.L1), L2: level(r.Cache.L2), LLC: level(r.Cache.LLC)},
		Period: r.Period, Plan: r.Plan, Complete: r.Complete, ExitStatus: r.ExitStatus,
		Processes: r.Processes, OtherAccesses: r.OtherAccesses, Recording: r.Recording,
	}
}

// level writes a cache as the flags --l1, --l2 and --llc take it: "16K:8".
func level(c topo.Cache) string {
	return fmt.Sprintf("%s:%d", strings.TrimSuffix(units.Bytes(c.Bytes).Exact(), "iB"), c.Ways)
}
