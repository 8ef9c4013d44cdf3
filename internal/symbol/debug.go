package symbol

import (
	"debug/dwarf"
	"debug/elf"
	"os"
	"slices"
	"sort"
)

// debugInfo is the DWARF of a module, read unit by unit as it is needed.
type debugInfo struct {
	path  string      // of the module
	data  *dwarf.Data // nil where there is none
	addrs []byte      // .debug_addr
	info  []byte      // .debug_info, if units of it are skeletons
	units []*unit     // by ascending offset
	index []span      // code of units, by ascending lo

	lacking string // the first reason why names are missing; "" is none that is known
}

// span is the addresses [lo, hi) of one unit.
type span struct {
	lo, hi uint64
	unit   *unit
}

// load reads the DWARF's outline once. m.mu is held.
func (m *Module) load() *debugInfo {
	if m.debug == nil {
		m.debug = &debugInfo{path: m.path}
		// Broken debug information counts as none: names get coarser, nothing fails.
		_ = m.loadInto(m.debug)
	}
	return m.debug
}

// loadInto fills d from the module's file, or from its debug file.
func (m *Module) loadInto(d *debugInfo) (err error) {
	defer func() {
		if err != nil {
			*d = debugInfo{path: m.path}
		}
	}()
	defer guard(&err, m.path)
	f, err := os.Open(m.path)
	if err != nil {
		return err
	}
	defer f.Close()
	e, err := elf.NewFile(f)
	if err != nil {
		return err
	}
	if !hasDebug(e) {
		debug, closer := openDebugFile(m.path, e, m.buildID)
		if debug == nil {
			return nil
		}
		defer closer()
		e = debug
	}
	if !hasDebug(e) {
		return nil
	}
	if d.data, err = e.DWARF(); err != nil {
		return err
	}
	if s := e.Section(".debug_addr"); s != nil {
		d.addrs, _ = s.Data()
	}
	if err := d.outline(); err != nil {
		return err
	}
	split := func(u *unit) bool { return u.root.Val(attrDwoName) != nil }
	if s := e.Section(".debug_info"); s != nil && slices.ContainsFunc(d.units, split) {
		d.info, _ = s.Data()
	}
	return nil
}

// hasDebug reports whether e itself has DWARF.
func hasDebug(e *elf.File) bool {
	for _, name := range []string{".debug_info", ".zdebug_info"} {
		if s := e.Section(name); s != nil && s.Type != elf.SHT_NOBITS && s.Size > 0 {
			return true
		}
	}
	return false
}

// outline lists the units and the code that each covers.
func (d *debugInfo) outline() error {
	r := d.data.Reader()
	for {
		root, err := r.Next()
		if err != nil || root == nil {
			break // what was read so far is kept
		}
		if root.Tag == 0 {
			continue
		}
		u := &unit{root: root, off: root.Offset}
		u.ranges, _ = d.data.Ranges(root)
		d.units = append(d.units, u)
		for _, p := range u.ranges {
			if p[0] < p[1] && p[0] != 0 {
				d.index = append(d.index, span{p[0], p[1], u})
			}
		}
		r.SkipChildren()
	}
	for i, u := range d.units {
		u.end = ^dwarf.Offset(0)
		if i+1 < len(d.units) {
			u.end = d.units[i+1].off
		}
	}
	sort.SliceStable(d.index, func(i, j int) bool { return d.index[i].lo < d.index[j].lo })
	return nil
}

// unitAt returns the parsed unit whose code covers pc, or nil.
func (d *debugInfo) unitAt(pc uint64) *unit {
	i := sort.Search(len(d.index), func(i int) bool { return d.index[i].lo > pc })
	for n := 0; i > 0 && n < 8; n++ {
		i--
		if pc < d.index[i].hi {
			u := d.index[i].unit
			d.parse(u)
			return u
		}
	}
	return nil
}

// unitOf returns the parsed unit that holds the entry at off, or nil.
func (d *debugInfo) unitOf(off dwarf.Offset) *unit {
	i := sort.Search(len(d.units), func(i int) bool { return d.units[i].off > off })
	if i == 0 {
		return nil
	}
	u := d.units[i-1]
	d.parse(u)
	return u
}
