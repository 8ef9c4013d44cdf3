package sample

import (
	"cmp"
	"math"
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/perfdata"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Line is what one party did with a cache line that nodes share, as profile.LineUse has
// it but for names.
type Line struct {
	Object              int    // number of the arena's object; 0 is none
	Number              uint64 // of the line: address / profile.LineBytes
	Node                topo.NodeID
	Region              arena.Region
	Code                arena.Code // module -1 where it is not known, or several
	Written, Read       uint64
	Loads, Stores, HITM uint64
}

// Lines are kept in sets, as a cache keeps them: of each the eight with the most
// samples, of which a new one replaces the last. What several nodes write has many
// samples at one line, so it stays, while what is walked through goes: of a line's first
// store no more is kept than that there was one. Only stores, and hits of what another
// core's cache had, make a line known.
const (
	lineWays    = 8
	lineSets    = 1 << 10
	lineParties = 8
)

// lineSet is the lines of a set, as far as looking for one needs them: half a line of
// the cache.
type lineSet struct {
	tags    [lineWays / tagsInWord]uint64
	samples [lineWays]uint16 // no more than fit; 0: the place is free, 1: there was a store
}

const (
	tagsInWord = 4 // of 16 bits
	oneInEach  = 0x0001000100010001
	topInEach  = 0x8000800080008000
)

// has reports whether a tag is in the set, or was: most lines are not, and this asks of
// all places at once whether the difference from theirs is zero.
func (s *lineSet) has(tag uint16) bool {
	want, zero := uint64(tag)*oneInEach, uint64(0)
	for i := range s.tags {
		d := s.tags[i] ^ want
		zero |= (d - oneInEach) &^ d & topInEach
	}
	return zero != 0
}

func (s *lineSet) tag(i int) uint16 { return uint16(s.tags[i/tagsInWord] >> (16 * (i % tagsInWord))) }

func (s *lineSet) setTag(i int, tag uint16) {
	w, shift := &s.tags[i/tagsInWord], 16*(i%tagsInWord)
	*w = *w&^(0xffff<<shift) | uint64(tag)<<shift
}

// line is one cache line and who used it.
type line struct {
	key     lineKey
	far     bool // another node's cache had it modified
	n       int  // parties
	parties [lineParties]party
}

// lineKey is a line of an object of a process.
type lineKey struct {
	number uint64
	pid    uint32
	object int32
}

// party is code on a node. pc is 0 where it stands for several, region then that of the
// one that had most samples.
type party struct {
	pc                  uint64
	written, read       uint64 // bytes where an access began
	region              arena.Region
	node                int32
	loads, stores, hitm uint32
}

func (p *party) samples() uint32 { return p.loads + p.stores }

func (p *party) same(q *party) bool {
	return p.pc == q.pc && p.node == q.node && p.region == q.region
}

// add adds q's samples to p's.
func (p *party) add(q *party) {
	p.written |= q.written
	p.read |= q.read
	p.loads += q.loads
	p.stores += q.stores
	p.hitm += q.hitm
}

// lines is the table of them. It never grows: none until the first is known.
type lines struct {
	sets []lineSet
	all  []line // of set i from i*lineWays on
}

// place is the set of a key, and its tag there.
func (k *lineKey) place() (set int, tag uint16) {
	h := (k.number ^ uint64(k.pid)<<40 ^ uint64(uint32(k.object))<<24) * 0x9e3779b97f4a7c15
	return int(h >> 32 & (lineSets - 1)), uint16(h >> 48)
}

// line counts the sample of a cell in its cache line. That most loads are of a line that is
// not known is seen before anything else is done.
func (w *worker) line(c *cell, s *perfdata.Sample, op profile.Op, served profile.Served) {
	t, key := &w.lines, lineKey{s.Addr / profile.LineBytes, c.pid, c.object}
	if op == profile.Store {
		served = profile.ServedUnknown
	}
	met := served.HITM() || served == profile.ServedRemoteCache
	n, tag := key.place()
	if op == profile.Load && !met && (t.sets == nil || !t.sets[n].has(tag)) {
		return
	}
	if t.sets == nil {
		t.sets, t.all = make([]lineSet, lineSets), make([]line, lineSets*lineWays)
	}
	l := t.find(n, tag, &key, op == profile.Store)
	if l == nil && met {
		l = t.make(n, t.sets[n].least(), tag, &key)
	}
	if l == nil {
		return
	}
	p := party{pc: s.IP, region: c.region, node: int32(w.r.nodeOf[s.CPU])}
	bit := uint64(1) << (s.Addr % profile.LineBytes)
	switch {
	case op == profile.Store:
		p.stores, p.written = 1, bit
	case served.HITM():
		p.loads, p.read, p.hitm = 1, bit, 1
	default:
		p.loads, p.read = 1, bit
	}
	l.far = l.far || served == profile.ServedRemoteHITM
	l.join(&p)
}

// find returns the line of a key in set n, one sample older; nil where it is not known.
// A store makes it known, the second one counts.
func (t *lines) find(n int, tag uint16, key *lineKey, store bool) *line {
	set := &t.sets[n]
	for i := range lineWays {
		if set.tag(i) != tag || set.samples[i] == 0 {
			continue
		}
		l := &t.all[n*lineWays+i]
		switch {
		case set.samples[i] == 1 && store:
			return t.make(n, i, tag, key)
		case set.samples[i] > 1 && l.key == *key:
			if set.samples[i] < math.MaxUint16 {
				set.samples[i]++
			}
			return l
		}
	}
	if store {
		i := set.least()
		if set.samples[i] > 1 {
			t.all[n*lineWays+i].n = 0
		}
		set.setTag(i, tag)
		set.samples[i] = 1
	}
	return nil
}

// least is the place with the fewest samples.
func (s *lineSet) least() int {
	least := 0
	for i, n := range s.samples {
		if n < s.samples[least] {
			least = i
		}
	}
	return least
}

// make makes place i of set n the line of a key.
func (t *lines) make(n, i int, tag uint16, key *lineKey) *line {
	t.sets[n].setTag(i, tag)
	t.sets[n].samples[i] = 2
	l := &t.all[n*lineWays+i]
	l.key, l.n, l.far = *key, 0, false
	return l
}

// join adds p to the line's parties. Where there are too many, the two of a node with
// the fewest samples become one without code, so that no node is forgotten for another.
func (l *line) join(p *party) {
	for i := range l.parties[:l.n] {
		if l.parties[i].same(p) {
			l.parties[i].add(p)
			return
		}
	}
	if l.n == lineParties && !l.fold() {
		return // more nodes than parties
	}
	l.parties[l.n] = *p
	l.n++
}

// fold makes one party of two; false where all are of different nodes.
func (l *line) fold() bool {
	slices.SortFunc(l.parties[:], func(a, b party) int {
		return cmp.Or(cmp.Compare(b.samples(), a.samples()), cmp.Compare(a.pc, b.pc), cmp.Compare(a.node, b.node))
	})
	for k := lineParties - 1; k > 0; k-- {
		for i := k - 1; i >= 0; i-- {
			if a, b := &l.parties[i], l.parties[k]; a.node == b.node {
				a.pc = 0
				a.add(&b)
				copy(l.parties[k:], l.parties[k+1:])
				l.n--
				return true
			}
		}
	}
	return false
}

// sharedLine is a line as all workers saw it.
type sharedLine struct {
	key     lineKey
	far     bool
	parties []party
}

// shared reports whether several nodes take part in the line, and one of them writes.
func (l *sharedLine) shared() bool {
	several, writes := false, false
	for i := range l.parties {
		p := &l.parties[i]
		several = several || p.node != l.parties[0].node
		writes = writes || p.stores > 0 || p.hitm > 0
	}
	return l.far || several && writes
}

func (l *sharedLine) samples() (n uint32) {
	for i := range l.parties {
		n += l.parties[i].samples()
	}
	return n
}

// join adds a party of a worker's line.
func (l *sharedLine) join(p party) {
	for i := range l.parties {
		if l.parties[i].same(&p) {
			l.parties[i].add(&p)
			return
		}
	}
	l.parties = append(l.parties, p)
}

// sharedLines is the lines of t's process that several nodes share, by object and
// address; of more than a worker holds those with the most samples. settled gives the new
// numbers of the workers'.
func (t *Table) sharedLines(workers []*worker, settled func(arena.Region) arena.Region) []*sharedLine {
	known := map[lineKey]*sharedLine{}
	var list []*sharedLine
	for _, w := range workers {
		for i := range w.lines.all {
			l := &w.lines.all[i]
			if l.n == 0 || int(l.key.pid) != t.PID {
				continue
			}
			s := known[l.key]
			if s == nil {
				s = &sharedLine{key: l.key}
				known[l.key], list = s, append(list, s)
			}
			s.far = s.far || l.far
			for _, p := range l.parties[:l.n] {
				p.region = settled(p.region)
				s.join(p)
			}
		}
		w.lines = lines{}
	}
	list = slices.DeleteFunc(list, func(l *sharedLine) bool { return !l.shared() })
	byPlace := func(a, b *sharedLine) int {
		return cmp.Or(cmp.Compare(a.key.object, b.key.object), cmp.Compare(a.key.number, b.key.number))
	}
	slices.SortFunc(list, func(a, b *sharedLine) int { return cmp.Or(cmp.Compare(b.samples(), a.samples()), byPlace(a, b)) })
	list = list[:min(len(list), lineSets*lineWays)]
	slices.SortFunc(list, byPlace)
	return list
}

// EachLine calls do for every party of every cache line that nodes share, line by line.
func (t *Table) EachLine(do func(Line)) {
	for _, l := range t.lines {
		for i := range l.parties {
			p := &l.parties[i]
			x := Line{Object: int(l.key.object), Number: l.key.number, Node: topo.NodeID(p.node), Region: p.region, Code: arena.Code{Module: -1},
				Written: p.written, Read: p.read, Loads: uint64(p.loads), Stores: uint64(p.stores), HITM: uint64(p.hitm)}
			if at := t.space.at(p.pc, math.MaxUint64); p.pc != 0 && at != nil && at.module >= 0 {
				m := int(at.module)
				x.Code = arena.Code{Module: m, VAddr: p.pc - t.space.modules[m].Base}
			}
			do(x)
		}
	}
}
