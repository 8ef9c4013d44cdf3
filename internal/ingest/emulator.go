package ingest

import (
	"fmt"

	"numaopt/internal/arena"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// Counts is what a run left behind of a process: the arena of an emulated one, or
// the table of the samples of one that ran by itself.
type Counts interface {
	Modules() ([]arena.Module, error)
	Funcs() ([]arena.Code, error)
	Starts() ([]arena.Code, error)
	Loops() ([]arena.Loop, error)
	Sites() ([][]uint64, error)
	Objects() ([]arena.Object, error)
	Threads() ([]arena.Thread, error)
	Notes() ([]arena.Note, error)
	NumPages() int
	EachPage(do func(i int, p arena.Page)) error
	NumBlocks() int // about
	EachBlock(do func(b *arena.Block)) error
	EachSmall(do func(arena.SmallVote)) error
}

// FromCounts makes a profile of one process. It may have been killed at any
// moment; what refers to nothing is left out.
func FromCounts(a Counts, run profile.Run, table *symbol.Table) (*profile.Profile, error) {
	b := &builder{
		a: a, table: table,
		p:       &profile.Profile{Run: run},
		moduleI: map[string]int{}, places: map[arena.Code]int{}, regionI: map[regionKey]int{}, regionOf: map[arena.Region]int{}, wholes: map[arena.Code]arena.Loop{},
	}
	for _, step := range []func() error{b.read, b.notes, b.threads, b.worksharings, b.objects, b.rows, b.latencies, b.codeUses, b.intervals} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	b.finish()
	b.p.Warnings = append(b.p.Warnings, table.Warnings()...)
	if err := b.p.Check(); err != nil {
		return nil, fmt.Errorf("the profile made from what the run left: %w", err)
	}
	return b.p, nil
}

// builder holds what the steps share.
type builder struct {
	a     Counts
	table *symbol.Table
	p     *profile.Profile

	modules []arena.Module
	elf     []*symbol.Module // by arena module; nil where it cannot be read
	funcs   []arena.Code
	starts  []arena.Code
	loops   []arena.Loop
	wholes  map[arena.Code]arena.Loop // parallel regions outside their worksharing loops
	sites   [][]uint64
	objs    []arena.Object
	owners  *owners

	moduleI  map[string]int // path → index in p.Modules
	places   map[arena.Code]int
	regionI  map[regionKey]int
	regionOf map[arena.Region]int
	siteI    []int              // arena site → index in p.Sites, -1 is not yet
	codeI    map[arena.Code]int // index in p.Codes
	pageI    []int              // arena page record → index in p.Pages, -1 is left out
}

func (b *builder) read() (err error) {
	if b.modules, err = b.a.Modules(); err != nil {
		return err
	}
	if b.funcs, err = b.a.Funcs(); err != nil {
		return err
	}
	if b.starts, err = b.a.Starts(); err != nil {
		return err
	}
	if b.loops, err = b.a.Loops(); err != nil {
		return err
	}
	if b.sites, err = b.a.Sites(); err != nil {
		return err
	}
	if b.objs, err = b.a.Objects(); err != nil {
		return err
	}
	b.siteI = make([]int, len(b.sites))
	for i := range b.siteI {
		b.siteI[i] = -1
	}
	b.elf = make([]*symbol.Module, len(b.modules))
	for i, m := range b.modules {
		if e, err := b.table.Open(m.Path); err == nil {
			b.elf[i] = e
		}
	}
	return nil
}

func (b *builder) notes() error {
	notes, err := b.a.Notes()
	if err != nil {
		return err
	}
	for _, n := range notes {
		switch {
		case n.Text == "":
		case n.Kind == arena.NotePinned:
			b.p.Run.Pinned = append(b.p.Run.Pinned, n.Text)
		default:
			b.p.Warnings = append(b.p.Warnings, n.Text)
		}
	}
	return nil
}

func (b *builder) threads() error {
	threads, err := b.a.Threads()
	if err != nil {
		return err
	}
	for _, t := range threads {
		node := topo.NodeID(t.Node)
		if int(node) >= len(b.p.Run.Topology.Nodes) {
			return fmt.Errorf("arena: thread %d is on node %d of %d", t.Rank, t.Node, len(b.p.Run.Topology.Nodes))
		}
		b.p.Threads = append(b.p.Threads, profile.Thread{Rank: t.Rank, CPU: t.CPU, Node: node, Pinned: t.Pinned})
	}
	return nil
}

// module returns the index in the profile of an arena's module, -1 for none.
func (b *builder) module(i int) int {
	if i < 0 || i >= len(b.modules) {
		return -1
	}
	path := b.modules[i].Path
	if k, ok := b.moduleI[path]; ok {
		return k
	}
	m := ident.Module{Path: path}
	if b.elf[i] != nil {
		m.BuildID = b.elf[i].BuildID()
	}
	k := len(b.p.Modules)
	b.moduleI[path] = k
	b.p.Modules = append(b.p.Modules, m)
	return k
}

// code names the instruction at an ELF address of an arena's module.
func (b *builder) code(c arena.Code) ident.Code {
	m := b.module(c.Module)
	if m < 0 {
		return ident.Code{Module: -1, Offset: c.VAddr}
	}
	out := ident.Code{Module: m, Offset: c.VAddr}
	switch e := b.elf[c.Module]; {
	case e == nil:
	case symbol.Runtime(imageName(b.p.Modules[m])):
		if f, ok := e.FunctionAt(c.VAddr); ok {
			out.Symbol = f.Symbol
		}
	default:
		out = e.Code(c.VAddr)
		out.Module = m
	}
	return out
}

// at finds the module at an address of the process: a living one if there is,
// the latest otherwise.
func (b *builder) at(addr uint64) arena.Code {
	found := -1
	for i := len(b.modules) - 1; i >= 0; i-- {
		if m := &b.modules[i]; addr >= m.Lo && addr < m.Hi && (found < 0 || b.modules[found].Dead && !m.Dead) {
			found = i
		}
	}
	if found < 0 {
		return arena.Code{VAddr: addr, Module: -1}
	}
	return arena.Code{VAddr: addr - b.modules[found].Base, Module: found}
}

// place returns the index in Places of a first touch's instruction, -1 for none.
func (b *builder) place(c arena.Code) int {
	if c.VAddr == 0 || c.Module < 0 || c.Module >= len(b.modules) {
		return -1
	}
	if i, ok := b.places[c]; ok {
		return i
	}
	i := len(b.p.Places)
	b.places[c] = i
	b.p.Places = append(b.p.Places, b.code(c))
	return i
}

// kernelPlace is the place of what the kernel touched where the program's code that asked
// for it is not known; a loop's name says more, and that is none.
func (b *builder) kernelPlace(r arena.Region) int {
	if _, loop := r.Loop(); loop {
		return -1
	}
	none := arena.Code{Module: -1}
	i, ok := b.places[none]
	if !ok {
		i = len(b.p.Places)
		b.places[none] = i
		b.p.Places = append(b.p.Places, ident.Code{Module: -1, Symbol: "kernel, for the program"})
	}
	return i
}

// site returns the index in Sites of an arena's call stack, -1 for none.
func (b *builder) site(i int) int {
	if i <= 0 || i >= len(b.sites) {
		return -1
	}
	if b.siteI[i] >= 0 {
		return b.siteI[i]
	}
	frames := make([]ident.Code, 0, len(b.sites[i]))
	for _, ret := range b.sites[i] {
		// The call is before the address that it returns to.
		at := b.at(ret - 1)
		c := b.code(at)
		c.Offset = at.VAddr + 1
		frames = append(frames, c)
	}
	b.siteI[i] = len(b.p.Sites)
	b.p.Sites = append(b.p.Sites, profile.Site{Frames: frames})
	return b.siteI[i]
}
