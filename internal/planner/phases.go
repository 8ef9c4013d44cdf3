package planner

import (
	"iter"
	"math"
	"slices"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
)

// A sweep is a serial loop around a parallel region (profile.Region.Sweep). Its
// chunks may go to other threads in each of P phases, so what a class of threads did
// is told apart by phase: a slot is a class in a phase, slot phase*classes+class.
// Loops that have no sweep use the slots of phase 0 alone.
//
// What a core's caches keep from one instance of the region to the next they lose
// where the next phase gives the chunk to another node: see again.

// sweepOf is the sweep of loops that are permuted alike: all are one call in one
// parallel region, which runs at least once for each node. 0 is none. Each call follows
// its sweep alone and stops being permuted where that has another length, which others
// that must be permuted alike would not notice in the same instance.
func (l *loops) sweepOf(p *profile.Profile, regions []int) int {
	first := &p.Regions[regions[0]]
	for _, i := range regions {
		if codeOf(p.Regions[i].Code) != codeOf(first.Code) || codeOf(p.Regions[i].Site) != codeOf(first.Site) {
			return 0
		}
	}
	if !l.byNodes || first.Sweep < uint64(l.n) || first.Sweep > math.MaxInt32 || l.classes*l.n > math.MaxUint16 { // see flow
		return 0
	}
	return int(first.Sweep)
}

// addPhases makes the slots of all phases, where a group has a sweep.
func (l *loops) addPhases(p *profile.Profile) {
	if !slices.ContainsFunc(l.groups, func(g loopGroup) bool { return g.sweep > 0 }) {
		return
	}
	l.node, l.mirror = slices.Repeat(l.node, l.n), slices.Repeat(l.mirror, l.n)
	l.touched = make([]uint8, len(p.Pages))
	for i := range p.Rows {
		r := &p.Rows[i]
		if pg := &p.Pages[r.Page]; pg.Thread == int(r.Thread) && pg.Region == int(r.Region) {
			l.touched[r.Page] = r.First
		}
	}
}

// toucher is the slot that touched page i first, in a loop of group g.
func (l *loops) toucher(g, i, thread int) (slot int) {
	if l.groups[g].sweep == 0 {
		return l.class[thread]
	}
	return int(l.touched[i])*l.n/profile.SweepParts*l.classes + l.class[thread]
}

// piece is the part of a row's accesses that one slot makes: from from to to, of all.
type piece struct {
	slot          int
	from, to, all uint64
}

// of is the part of count accesses; the pieces of a row add up to all.
func (p piece) of(count uint64) uint64 {
	return share(count, p.to, p.all) - share(count, p.from, p.all)
}

// pieces divides row r of a loop of group g among the phases of its sweep: between
// the first and the last access they are taken to be even.
func (l *loops) pieces(g int, r *profile.Row) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		class := l.class[r.Thread]
		if l.groups[g].sweep == 0 {
			yield(piece{class, 0, 1, 1})
			return
		}
		n := uint64(l.n) // parts are of n units, phases of SweepParts
		lo, hi := uint64(r.First)*n, (uint64(r.Last)+1)*n
		for q := lo / profile.SweepParts; q*profile.SweepParts < hi; q++ {
			from, to := max(lo, q*profile.SweepParts), min(hi, (q+1)*profile.SweepParts)
			if !yield(piece{int(q)*l.classes + class, from - lo, to - lo, hi - lo}) {
				return
			}
		}
	}
}

// linesPerPage is cache lines of 64 bytes.
const linesPerPage = 64

// again is how many of the accesses of row r, which a cache served because an earlier
// instance of the region had brought the line, would be DRAM accesses in the first
// instance of a phase that another node runs: those of one instance, and no line
// twice.
func (l *loops) again(p *profile.Profile, g int, r *profile.Row) uint64 {
	sweep := uint64(l.groups[g].sweep)
	if !l.misses || sweep == 0 || r.First == r.Last || r.Level != profile.L2 && r.Level != profile.LLC {
		return 0
	}
	between := max(1, (uint64(r.Last)-uint64(r.First))*sweep/profile.SweepParts)
	return min(r.Count/between, linesPerPage*max(1, p.Regions[r.Region].Invocations/sweep))
}

// made is the accesses of f with its group's chunks run where to says, by slot: the
// first in a phase make more if another node ran the phase before.
func (l *loops) made(f *flow, to []int) uint64 {
	if f.again > 0 && l.turned(int(f.slot), to) {
		return f.count + f.again
	}
	return f.count
}

// turned reports whether another node runs the chunks of a slot, not of the first
// phase, than in the phase before.
func (l *loops) turned(slot int, to []int) bool { return to[slot] != to[slot-l.classes] }

// inPhase is the node whose threads take the chunks of node m in the phase of slot.
func (l *loops) inPhase(s schedule, slot, m int) int {
	turn := slot / l.classes * s.step % l.n
	return (slices.Index(s.nodes, m) - turn + l.n) % l.n
}

// turns are the steps from phase to phase that are tried: to the next node and back.
func (l *loops) turns() []int {
	if l.n == 2 {
		return []int{1}
	}
	return []int{1, l.n - 1}
}

// rotations are the block-exclusive schedules that suit pages which nobody else
// wants: each turn, with the chunks of the first phase in order and in reverse.
func (l *loops) rotations() (list []schedule) {
	up := make([]int, l.n)
	for n := range up {
		up[n] = n
	}
	down := slices.Clone(up)
	slices.Reverse(down)
	for _, step := range l.turns() {
		list = append(list, schedule{plan.BlockExclusive, up, step}, schedule{plan.BlockExclusive, down, step})
	}
	return list
}

// bestRotation is the block-exclusive schedule of this step with the largest gain,
// see search.match.
func (l *loops) bestRotation(gain []uint64, step int) schedule {
	m := make([]int64, l.n*l.n) // by node of the chunks and place in schedule.nodes
	for slot, from := range l.node {
		turn := slot / l.classes * step
		for n := range l.n {
			m[from*l.n+(n+turn)%l.n] += int64(gain[slot*l.n+n])
		}
	}
	s := schedule{plan.BlockExclusive, make([]int, l.n), step}
	for from, place := range assignment(m, l.n) {
		s.nodes[place] = from
	}
	return s
}
