package runfile

import (
	"fmt"
	"slices"
)

// Check reports the first rule of the format that r breaks.
func (r Run) Check() error {
	switch r.Mode {
	case Track, Apply, Bind:
	default:
		return fmt.Errorf("mode %q is not track, apply or bind", r.Mode)
	}
	if r.System != Linux && r.System != Emulated {
		return fmt.Errorf("system %q is not linux or emulated", r.System)
	}
	if r.Log != "" && (r.Mode != Track || r.System != Linux) {
		return fmt.Errorf("a log in mode %s on %s: it is for track on linux", r.Mode, r.System)
	}
	if len(r.Nodes) > 64 {
		return fmt.Errorf("%d nodes are more than 64", len(r.Nodes))
	}
	for i, c := range r.CPUs {
		if c.ID < 0 || c.Node < 0 || c.Node >= len(r.Nodes) {
			return fmt.Errorf("rank %d: CPU %d is on node %d of %d", i, c.ID, c.Node, len(r.Nodes))
		}
	}
	for i, o := range r.Objects {
		if err := r.checkObject(o); err != nil {
			return fmt.Errorf("object %d (%s): %w", i, o.Name, err)
		}
	}
	for i, l := range r.Loops {
		if err := r.checkLoop(l); err != nil {
			return fmt.Errorf("loop %d (%s): %w", i, l.Name, err)
		}
	}
	return nil
}

// checkLoop reports the first rule that l breaks.
func (r Run) checkLoop(l Loop) error {
	switch {
	case l.Runtime != GOMP && l.Runtime != KMP:
		return fmt.Errorf("runtime %q is not gomp or kmp", l.Runtime)
	case l.Module < 0 || l.Module >= len(r.Modules):
		return fmt.Errorf("call site in module %d of %d", l.Module, len(r.Modules))
	case l.Offset == 0:
		return fmt.Errorf("no call site")
	case l.Schedule != Inverse && l.Schedule != ByNodes && l.Schedule != BlockExclusive && l.Schedule != Affine:
		return fmt.Errorf("schedule %q is not inverse, nodes, block-exclusive or affine", l.Schedule)
	case (l.Schedule == ByNodes || l.Schedule == BlockExclusive) != (len(l.Nodes) > 0):
		return fmt.Errorf("schedule %s and %d nodes do not fit", l.Schedule, len(l.Nodes))
	case l.Schedule == BlockExclusive && (l.Sweep < uint64(len(r.Nodes)) || l.Step < 1 || l.Step >= len(r.Nodes)):
		return fmt.Errorf("a sweep of %d with step %d does not fit %d nodes", l.Sweep, l.Step, len(r.Nodes))
	}
	sorted := slices.Sorted(slices.Values(l.Nodes))
	for n, node := range sorted {
		if node != n || len(sorted) != len(r.Nodes) {
			return fmt.Errorf("nodes %v are not those of the machine, 0 to %d, each once", l.Nodes, len(r.Nodes)-1)
		}
	}
	return nil
}

// checkObject reports the first rule that o breaks.
func (r Run) checkObject(o Object) error {
	switch {
	case o.Kind != Heap && o.Kind != Mapping && o.Kind != Global:
		return fmt.Errorf("kind %q is not heap, mapping or global", o.Kind)
	case (o.Kind == Global) != (o.Symbol != nil):
		return fmt.Errorf("kind %s and symbol do not fit", o.Kind)
	case o.Kind != Global && len(o.Frames) == 0:
		return fmt.Errorf("no frames")
	case o.Count < 1 || o.First < 0 || o.Rank < -1:
		return fmt.Errorf("rank %d, first %d, count %d", o.Rank, o.First, o.Count)
	case o.MinBytes > o.MaxBytes:
		return fmt.Errorf("sizes %d to %d", o.MinBytes, o.MaxBytes)
	}
	for k, spans := range o.Frames {
		if len(spans) == 0 {
			return fmt.Errorf("frame %d has no addresses", k)
		}
		for _, s := range spans {
			if s.Module < 0 || s.Module >= len(r.Modules) || s.Lo >= s.Hi {
				return fmt.Errorf("frame %d: [%#x,%#x) of module %d of %d", k, s.Lo, s.Hi, s.Module, len(r.Modules))
			}
		}
	}
	if s := o.Symbol; s != nil && (s.Module < 0 || s.Module >= len(r.Modules) || s.Bytes == 0) {
		return fmt.Errorf("symbol of %d bytes in module %d of %d", s.Bytes, s.Module, len(r.Modules))
	}
	if err := r.checkPolicy(o); err != nil {
		return err
	}
	if err := checkRuns("otherwise", o.Otherwise, len(r.Nodes)); err != nil {
		return err
	}
	return checkRuns("touched", o.Touched, 2)
}

// checkPolicy reports a policy whose argument does not fit the nodes.
func (r Run) checkPolicy(o Object) error {
	nodes := len(r.Nodes)
	switch o.Policy {
	case PolicyBind:
		if o.Node < 0 || o.Node >= nodes {
			return fmt.Errorf("bind to node %d of %d", o.Node, nodes)
		}
	case PolicyInterleave:
		if o.Mask == 0 || (nodes < 64 && o.Mask>>nodes != 0) {
			return fmt.Errorf("interleave over node mask %#x of %d nodes", o.Mask, nodes)
		}
	case PolicyBlockCyclic:
		if o.Block == 0 {
			return fmt.Errorf("block-cyclic with a block of 0 bytes")
		}
	case PolicyXWise:
	case PolicyPages:
		if len(o.Map) == 0 {
			return fmt.Errorf("pages without a map")
		}
	default:
		return fmt.Errorf("policy %q is not known", o.Policy)
	}
	return checkRuns("map", o.Map, nodes)
}

// checkRuns reports a run that is empty or names a node that does not exist.
func checkRuns(what string, runs []Pages, nodes int) error {
	for i, p := range runs {
		if p.Count < 1 || p.Node < -1 || p.Node >= nodes {
			return fmt.Errorf("%s: run %d is %d pages on node %d of %d", what, i, p.Count, p.Node, nodes)
		}
	}
	return nil
}
