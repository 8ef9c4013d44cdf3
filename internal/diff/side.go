package diff

import (
	"math"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/classify"
	"numaopt/internal/latency"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// side is the sums of one profile.
type side struct {
	p       *profile.Profile
	nodes   int
	groups  []access.Group
	groupOf []int
	pages   []classify.Page
	total   access.Traffic
	objects []access.Traffic     // by group
	loops   []access.Traffic     // by region
	cells   map[cell]access.Flow // DRAM accesses
	sharing []classify.Sharing   // by group
	shared  classify.Sharing
	uses    [][]use         // by group
	homes   [][]uint64      // by group: pages on each node
	users   [][]uint64      // by group: DRAM accesses of parallel code from each node
	touches []map[touch]int // by group: pages by who touched them first
	threads int
	work    []map[int]access.Traffic // by region: of each rank
	cycles  uint64                   // of all loads with a latency
	costs   []uint64                 // by group, see latency.Costs; nil is not known
}

// cell is an object accessed by a loop.
type cell struct{ group, region int }

// use is the part, in [0,1], of an object's accesses that are a loop's loads and stores.
type use struct {
	region        int
	loads, stores float64
}

// touch is how a page came to its node.
type touch struct {
	place, region int
	serial        bool
	rank          int // of serial code; -1 is of threads of a team
}

func newSide(p *profile.Profile) *side {
	s := &side{p: p, nodes: len(p.Run.Topology.Nodes), pages: classify.Pages(p, classify.DefaultOptions()), total: access.Total(p)}
	s.groups, s.groupOf = access.Groups(p)
	s.objects = access.By(p, len(s.groups), func(r *profile.Row) int { return s.group(int(r.Page)) })
	s.loops = access.ByRegion(p)
	s.sharing = classify.Sum(s.pages, len(s.groups), s.group)
	s.shared = classify.Sum(s.pages, 1, func(int) int { return 0 })[0]
	s.meet()
	s.placed()
	s.used()
	s.loaded()
	return s
}

func (s *side) group(page int) int { return s.groupOf[s.p.Pages[page].Object] }

// meet sums up which loop accesses which object.
func (s *side) meet() {
	index, keys := map[cell]int{}, []cell{}
	of := make([]int32, len(s.p.Rows))
	for i := range s.p.Rows {
		r := &s.p.Rows[i]
		k := cell{s.group(int(r.Page)), int(r.Region)}
		at, ok := index[k]
		if !ok {
			at = len(keys)
			index[k], keys = at, append(keys, k)
		}
		of[i] = int32(at)
	}
	next := 0
	sums := access.By(s.p, len(keys), func(*profile.Row) int { next++; return int(of[next-1]) })
	s.cells, s.uses = map[cell]access.Flow{}, make([][]use, len(s.groups))
	for i, k := range keys {
		s.cells[k] = sums[i].DRAM
		all := float64(max(1, s.objects[k.group].All.Total()))
		s.uses[k.group] = append(s.uses[k.group], use{k.region, float64(sums[i].All.Total()-sums[i].Stores) / all, float64(sums[i].Stores) / all})
	}
}

// placed notes where pages are, and who put them there.
func (s *side) placed() {
	s.homes, s.touches = make([][]uint64, len(s.groups)), make([]map[touch]int, len(s.groups))
	for g := range s.groups {
		s.homes[g], s.touches[g] = make([]uint64, s.nodes), map[touch]int{}
	}
	for i := range s.p.Pages {
		x, g := &s.p.Pages[i], s.group(i)
		if s.pages[i].Part {
			continue
		}
		if x.Home != topo.Unknown {
			s.homes[g][x.Home]++
		}
		if x.Thread >= 0 {
			t := touch{x.Place, x.Region, s.pages[i].SerialInit, -1}
			if t.serial {
				t.rank = s.p.Threads[x.Thread].Rank
			}
			s.touches[g][t]++
		}
	}
}

func (s *side) used() {
	serial := access.SerialCode(s.p)
	byNode := access.By(s.p, len(s.groups)*s.nodes, func(r *profile.Row) int {
		if serial(r) {
			return -1
		}
		return s.group(int(r.Page))*s.nodes + int(s.p.Threads[r.Thread].Node)
	})
	s.users = make([][]uint64, len(s.groups))
	for g := range s.groups {
		for n := range s.nodes {
			s.users[g] = append(s.users[g], byNode[g*s.nodes+n].DRAM.Total())
		}
	}
	s.worked()
}

// worked notes what each rank did in each region.
func (s *side) worked() {
	n := len(s.p.Threads)
	ranks := map[int]bool{}
	s.work = make([]map[int]access.Traffic, len(s.p.Regions))
	for i, t := range access.By(s.p, len(s.p.Regions)*n, func(r *profile.Row) int { return int(r.Region)*n + int(r.Thread) }) {
		if t.All.Total() == 0 {
			continue
		}
		region, rank := i/n, s.p.Threads[i%n].Rank
		if s.work[region] == nil {
			s.work[region] = map[int]access.Traffic{}
		}
		t.Merge(s.work[region][rank]) // of the other CPUs of the rank
		s.work[region][rank], ranks[rank] = t, true
	}
	s.threads = len(ranks)
}

func (s *side) loaded() {
	if len(s.p.Latencies) == 0 {
		return
	}
	all := latency.Total(s.p)
	s.cycles = all.Cycles
	s.costs = latency.Costs(s.p, len(s.groups), func(l *profile.Latency) int { return s.groupOf[l.Object] })
}

// byFunction is the DRAM accesses of all regions of each function.
func (s *side) byFunction() map[string]access.Flow {
	sums := map[string]access.Flow{}
	for i, t := range s.loops {
		f := sums[s.p.Regions[i].Function]
		f.Merge(t.DRAM)
		sums[s.p.Regions[i].Function] = f
	}
	return sums
}

// points is what n remote accesses are of all DRAM accesses with a known home.
func (s *side) points(f access.Flow) float64 { return access.Pct(f.Remote, s.total.DRAM.Known()) }

// dramPct is the share of f in all DRAM accesses.
func (s *side) dramPct(f access.Flow) float64 { return access.Pct(f.Total(), s.total.DRAM.Total()) }

// cost is what the remote loads of group g cost beyond local ones, in per cent of the
// cycles of all loads; of all groups where g is negative. NaN is not known.
func (s *side) cost(g int) float64 {
	if s.costs == nil {
		return math.NaN()
	}
	sum := uint64(0)
	for i, c := range s.costs {
		if g < 0 || g == i {
			sum += c
		}
	}
	return access.Pct(sum, s.cycles)
}

// uniform is the share of uniformly shared pages in x, and the share without those
// that are shared through serial initialisation alone.
func uniform(x *classify.Sharing) (shared, without float64) {
	all := uint64(x.All().Pages)
	return access.Pct(uint64(x.UniformlyShared.Pages), all), access.Pct(uint64(x.UniformlyShared.Pages-x.SerialOnly.Pages), all)
}

// firstTouch is the touch that most pages of group g have in common, and its share of
// them in [0,1]; 0 where nobody knows.
func (s *side) firstTouch(g int) (most touch, share float64) {
	most = touch{place: -1, region: -1, rank: -1}
	all, count := 0, 0
	for t, n := range s.touches[g] {
		all += n
		if n > count || n == count && t.compare(most) < 0 {
			most, count = t, n
		}
	}
	return most, units.Percent(float64(count), float64(all)) / 100
}

func (t touch) compare(u touch) int {
	return slices.Compare([]int{t.place, t.region, t.rank}, []int{u.place, u.region, u.rank})
}
