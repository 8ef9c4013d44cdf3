package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"numaopt/internal/ident"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Check says what is wrong with p, the first fault found; nil if nothing.
func (p *Plan) Check() error {
	if p.Version != Version {
		return fmt.Errorf("%w %d", ErrVersion, p.Version)
	}
	if err := p.From.check(); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if err := p.Predict.check(); err != nil {
		return err
	}
	switch p.Threads.Bind {
	case "compact", "spread", "none":
	default:
		return fmt.Errorf("threads: bind %q is not compact, spread or none", p.Threads.Bind)
	}
	if err := CheckPageSize(p.PageSize); p.PageSize != 0 && err != nil {
		return fmt.Errorf("page-size: %w", err)
	}
	claims := make(map[string][]*Entry)
	for i := range p.Objects {
		e := &p.Objects[i]
		if err := e.check(p.From.Nodes); err != nil {
			return fmt.Errorf("object %d (%s): %w", i+1, e.Name, err)
		}
		key := e.key()
		for _, o := range claims[key] {
			if e.meets(o) {
				return fmt.Errorf("object %d (%s): an entry above it (%s) places the same memory", i+1, e.Name, o.Name)
			}
		}
		claims[key] = append(claims[key], e)
	}
	return p.checkLoops()
}

// CheckPageSize says why pages of this size are none to plan for; nil if they are.
func CheckPageSize(size units.Bytes) error {
	if size < units.PageSize || size > units.GiB || size&(size-1) != 0 {
		return fmt.Errorf("%v is not a power of two from 4K to 1G, such as 64K or 2M", size)
	}
	return nil
}

// checkLoops says what is wrong with the loops: each by itself, two at one call
// site, or of one group with different schedules.
func (p *Plan) checkLoops() error {
	type site struct {
		module Module
		offset uint64
	}
	sites, groups := make(map[site]*Loop), make(map[int]*Loop)
	for i := range p.Loops {
		l := &p.Loops[i]
		fail := func(format string, args ...any) error {
			return fmt.Errorf("loop %d (%s): %w", i+1, l.Name, fmt.Errorf(format, args...))
		}
		if err := l.check(p.From.Nodes); err != nil {
			return fail("%w", err)
		}
		at := site{l.Module, l.Offset}
		if o := sites[at]; o != nil {
			return fail("a loop above it (%s) has the same call site", o.Name)
		}
		sites[at] = l
		if o := groups[l.Group]; o != nil && l.Group > 0 && !l.alike(o) {
			return fail("it is of group %d as %s, but has another schedule; loops of a group are permuted alike", l.Group, o.Name)
		}
		groups[l.Group] = l
	}
	return nil
}

func (l *Loop) check(nodes int) error {
	if strings.ContainsFunc(l.Name, unicode.IsControl) || l.Name == "" {
		return fmt.Errorf("name %q is empty or has control characters", l.Name)
	}
	if err := l.Module.check(); err != nil {
		return err
	}
	switch {
	case l.Offset == 0:
		return errors.New("no offset: it is the return address of the call that fetches the loop's bounds")
	case l.Runtime != "libgomp" && l.Runtime != "libomp":
		return fmt.Errorf("runtime %q is not libgomp or libomp", l.Runtime)
	case l.Group < 0:
		return fmt.Errorf("group %d is negative", l.Group)
	}
	if err := l.checkSchedule(nodes); err != nil {
		return err
	}
	return l.Predict.check()
}

// alike reports whether l and o are permuted alike.
func (l *Loop) alike(o *Loop) bool {
	return o.Schedule == l.Schedule && slices.Equal(o.Nodes, l.Nodes) && o.Sweep == l.Sweep && o.Step == l.Step
}

func (l *Loop) checkSchedule(nodes int) error {
	switch l.Schedule {
	case StaticInverse, Affine:
		if len(l.Nodes) > 0 {
			return fmt.Errorf("schedule %q has no nodes; they belong to %q and %q", l.Schedule, ByNodes, BlockExclusive)
		}
	case ByNodes, BlockExclusive:
		if err := checkPermutation(l.Nodes, nodes); err != nil {
			return err
		}
	default:
		return fmt.Errorf("schedule %q is not %s, %s, %s or %s", l.Schedule, StaticInverse, ByNodes, BlockExclusive, Affine)
	}
	switch {
	case l.Schedule != BlockExclusive && (l.Sweep != 0 || l.Step != 0):
		return fmt.Errorf("schedule %q has no sweep and no step; they belong to %q", l.Schedule, BlockExclusive)
	case l.Schedule != BlockExclusive:
		return nil
	case l.Sweep < nodes:
		return fmt.Errorf("a sweep of %d instances is shorter than its %d phases, one for each node", l.Sweep, nodes)
	case l.Step < 1 || l.Step >= nodes || gcd(l.Step, nodes) > 1:
		return fmt.Errorf("step %d is not from 1 to %d, or has a factor in common with the %d nodes: each node must take each chunk once", l.Step, nodes-1, nodes)
	}
	return nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// checkPermutation says why list is not each of the plan's nodes once.
func checkPermutation(list []int, nodes int) error {
	seen := make([]bool, nodes)
	for _, n := range list {
		if err := checkNode(n, nodes); err != nil {
			return fmt.Errorf("nodes: %w", err)
		}
		if seen[n] {
			return fmt.Errorf("nodes: %v has node %d twice; each node's chunks are taken once", list, n)
		}
		seen[n] = true
	}
	if len(list) != nodes {
		return fmt.Errorf("nodes: %v has %d of the plan's %d nodes; each must be there", list, len(list), nodes)
	}
	return nil
}

func (f *From) check() error {
	if f.Nodes < 1 {
		return fmt.Errorf("nodes is %d", f.Nodes)
	}
	// A machine that is not NODESxCPUS has a name that only people read.
	if t, err := topo.Parse(f.Topology); err == nil && len(t.Nodes) != f.Nodes {
		return fmt.Errorf("topology %s has %d nodes, but nodes is %d", f.Topology, len(t.Nodes), f.Nodes)
	}
	return nil
}

func (p Predict) check() error {
	list := []float64{p.RemoteBefore, p.RemoteAfter, p.PagesOnly}
	if p.Source != nil {
		list = append(list, *p.Source)
	}
	for _, v := range list {
		if !(v >= 0 && v <= 100) {
			return fmt.Errorf("predicted %v %% is not from 0 to 100", v)
		}
	}
	return nil
}

func (e *Entry) check(nodes int) error {
	if strings.ContainsFunc(e.Name, unicode.IsControl) || e.Name == "" {
		return fmt.Errorf("name %q is empty or has control characters", e.Name)
	}
	if e.Bytes < 1 {
		return fmt.Errorf("size of %d bytes", int64(e.Bytes))
	}
	var err error
	switch e.Kind {
	case "heap", "mapping":
		err = e.checkStack()
	case "global":
		err = e.checkGlobal()
	default:
		err = fmt.Errorf("kind %q is not heap, mapping or global", e.Kind)
	}
	if err != nil {
		return err
	}
	for _, run := range e.Touched {
		if run.Count < 1 || run.Node != -1 && run.Node != 1 {
			return errors.New(`touched: runs are "1*PAGES" for touched and "-*PAGES" for untouched pages`)
		}
	}
	if err := e.Place.Check(nodes); err != nil {
		return fmt.Errorf("place: %w", err)
	}
	if e.Otherwise != nil {
		if err := e.Otherwise.Check(nodes); err != nil {
			return fmt.Errorf("otherwise: %w", err)
		}
	}
	return e.Predict.check()
}

func (e *Entry) checkStack() error {
	if len(e.Stack) == 0 {
		return fmt.Errorf("a %s object has no stack", e.Kind)
	}
	for i := range e.Stack {
		if err := e.Stack[i].Module.check(); err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
	}
	if in := e.Instance; in != nil && (in.Rank < 0 || in.First < 0 || in.Count < 1) {
		return fmt.Errorf("instance: rank %d, first %d, count %d", in.Rank, in.First, in.Count)
	}
	if e.Symbol != "" {
		return fmt.Errorf("a %s object has a symbol", e.Kind)
	}
	return nil
}

func (e *Entry) checkGlobal() error {
	if e.Symbol == "" || strings.ContainsFunc(e.Symbol, unicode.IsControl) {
		return errors.New("a global object has no symbol")
	}
	if len(e.Stack) > 0 || e.Instance != nil {
		return errors.New("a global object has a stack or an instance")
	}
	return e.Module.check()
}

func (m *Module) check() error {
	if m.Name == "" || strings.ContainsAny(m.Name, "/") || strings.ContainsFunc(m.Name, unicode.IsControl) {
		return fmt.Errorf("module name %q is not the base name of a file", m.Name)
	}
	if hex := strings.TrimPrefix(m.BuildID, ident.ContentPrefix); strings.Trim(hex, "0123456789abcdef") != "" {
		return fmt.Errorf("build id %q is not lower-case hexadecimal", m.BuildID)
	}
	return nil
}

// key is equal for two entries that name the same symbol or call stack.
func (e *Entry) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%s|%s|%s|", e.Kind, e.Symbol, e.File, e.Module)
	for _, f := range e.Stack {
		fmt.Fprintf(&b, "%s|%#x|", f.Module, f.Offset)
	}
	return b.String()
}

// meets is true where two entries of one key are of the same allocations.
func (e *Entry) meets(o *Entry) bool {
	a, b := e.Instance, o.Instance
	if a == nil || b == nil {
		return true
	}
	return a.Rank == b.Rank && a.First < b.First+b.Count && b.First < a.First+a.Count
}
