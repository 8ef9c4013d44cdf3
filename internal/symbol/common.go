package symbol

// agreed is the members of a COMMON block, in the order of the source, if all its
// declarations cut it into pieces of the same sizes, each as most of
// them declare it: programs rename members, and gfortran says in one place only where
// they are. nil where they do not, or where nobody says where
// the members are.
func (d *debugInfo) agreed(declarations []*detail) []*detail {
	var located []*detail
	for i, c := range declarations {
		if len(c.members) != len(declarations[0].members) {
			return nil
		}
		all := true
		for k, v := range c.members {
			a, ok := d.array(v.kind)
			if v.size = uint64(a.bytes()); !ok || i > 0 && v.size != declarations[0].members[k].size {
				return nil
			}
			all = all && v.lo != 0
		}
		if all && located == nil {
			located = c.members
		}
	}
	var list []*detail
	for k, at := range located {
		member := *mostly(declarations, k)
		member.lo = at.lo
		list = append(list, &member)
	}
	return list
}

// mostly is member k as most declarations call it, of these the first.
func mostly(declarations []*detail, k int) *detail {
	times := make(map[string]int)
	for _, c := range declarations {
		times[c.members[k].name]++
	}
	best := declarations[0].members[k]
	for _, c := range declarations {
		if v := c.members[k]; times[v.name] > times[best.name] {
			best = v
		}
	}
	return best
}

// bytes is the size of a, a scalar too; 0 where that is not known.
func (a Array) bytes() int64 {
	n := a.Elem
	for _, k := range a.Dims {
		n *= k
	}
	return n
}

// split returns the members of the COMMON block v as variables of their own: arrays of
// a page or more, and what lies between them if that has a page. Their Symbol is that of
// the block with the members behind it, "flds_(u)", "work_(a:c)", their Name "u in
// /flds/". nil where they would be no other than v.
func (v *Variable) split(d *detail) []Variable {
	if len(d.members) < 2 {
		return nil
	}
	var list []Variable
	for i, m := range d.members {
		if end := m.lo + m.size; m.lo < v.VAddr || end > v.VAddr+v.Size || i > 0 && m.lo < d.members[i-1].lo+d.members[i-1].size {
			return nil // no layout of this block
		}
	}
	for i := 0; i < len(d.members); {
		from, n := d.members[i], 1
		for ; from.size < detailBytes && i+n < len(d.members) && d.members[i+n].size < detailBytes; n++ {
		}
		to := d.members[i+n-1]
		if i += n; to.lo+to.size-from.lo < detailBytes {
			continue
		}
		name := from.name
		if n > 1 {
			name += ":" + to.name
		}
		list = append(list, Variable{Symbol: v.Symbol + "(" + name + ")", Name: name + " in /" + d.name + "/", VAddr: from.lo,
			Size: to.lo + to.size - from.lo, File: from.file, Line: from.line, Kind: Common, Section: v.Section})
	}
	return list
}
