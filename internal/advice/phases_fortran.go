package advice

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// declareFortran is declare for Fortran.
func (x *family) declareFortran(item *Item) {
	var declarations strings.Builder
	var begin []string
	declarations.WriteString("type(numaopt_dist) :: ")
	for i, m := range x.members {
		if i > 0 {
			declarations.WriteString(", ")
		}
		declarations.WriteString(m.dist())
	}
	declarations.WriteString("  ! behind: use numaopt\n")
	for _, m := range x.members {
		name := m.name
		if m.padded {
			begin = append(begin, x.paddedFortran(m))
			fmt.Fprintf(&declarations, "! %[1]s has the attribute pointer, and no bounds: %[1]s(%[2]s)\n", name, colons(len(m.shape.Dims)))
			continue
		}
		begin = append(begin, fmt.Sprintf("  %[1]s = %[2]s\n  refused = numaopt_distribute_to(c_loc(%[3]s), %[1]s%%bytes, %[1]s, report)\n",
			m.dist(), x.constructor(m, "_c_size_t", fmt.Sprint(m.layout.elem)), name))
		fmt.Fprintf(&declarations, "! %s gets the attribute target\n", name)
	}
	item.Changes = append(item.Changes, Change{Where: x.f.moduleOf(x.where()), Text: declarations.String()})
	item.Changes = append(item.Changes, x.made(begin, func(text string) string {
		uses := "block\n  use numaopt\n  use, intrinsic :: iso_c_binding\n  type(numaopt_report) :: report\n"
		if strings.Contains(text, "refused") {
			uses += "  integer(c_int) :: refused\n"
		}
		return uses + text + "end block\n"
	})...)
	x.nameNotes(item)
	item.Notes = append(item.Notes, "Indices are taken to begin at 1: those of an array with another lower bound are to be shifted.")
}

var (
	moduleText  = regexp.MustCompile(`(?im)^[ \t]*module[ \t]+([a-z]\w*)[ \t]*$`)
	programText = regexp.MustCompile(`(?im)^[ \t]*program[ \t]+([a-z]\w*)[ \t]*$`)
)

// moduleOf says where the variables that all procedures of a source file see are declared.
func (f *finder) moduleOf(name string) string {
	file, base := f.source(name), path.Base(name)
	if file == nil {
		return "in a module that the loops of " + base + " use"
	}
	if m := moduleText.FindStringSubmatch(file.code); m != nil {
		return fmt.Sprintf("in a module of %s, as %s", base, m[1])
	}
	if m := programText.FindStringSubmatch(file.code); m != nil {
		return fmt.Sprintf("%s has no module: among the declarations of program %s, whose own procedures see them, or in a new module for those outside", base, m[1])
	}
	return fmt.Sprintf("%s has no module: in a new one that its loops use", base)
}

// colons is the bounds of a pointer of n dimensions.
func colons(n int) string { return strings.TrimSuffix(strings.Repeat(":, ", n), ", ") }

// paddedFortran makes m a pointer to the part of longer rows that it is.
func (x *family) paddedFortran(m *member) string {
	last := m.layout.axes[len(m.layout.axes)-1]
	var rows, part []string
	for i, n := range m.shape.Dims {
		row, all := fmt.Sprintf("%d_c_size_t", n), ":"
		if i == last {
			row, all = fmt.Sprintf("%s%%padded(%d)", m.dist(), last+1), fmt.Sprintf(":%d", n)
		}
		rows, part = append([]string{row}, rows...), append([]string{all}, part...)
	}
	return fmt.Sprintf("  %[1]s = %[2]s\n  call c_f_pointer(numaopt_alloc(%[1]s, report), %[3]s, [%[4]s])\n  %[3]s => %[3]s(%[5]s)\n",
		m.dist(), x.constructor(m, "_c_size_t", fmt.Sprint(m.layout.elem)), m.name, strings.Join(rows, ", "), strings.Join(part, ", "))
}

// loopFortran is a loop in Fortran that follows the distribution.
func (x *family) loopFortran(u *use, m *member) string {
	n := u.nest
	top := n.par
	if n.outer {
		top = n.ser
	}
	names := newNames(n.file.code[top.head:top.after], n.par.Var, serialName(n))
	do := func(l *loop, from, to string) string {
		if l.Down {
			return fmt.Sprintf("do %s = %s, %s, -1", l.Var, to, from)
		}
		return fmt.Sprintf("do %s = %s, %s", l.Var, from, to)
	}
	own := []string{names.phase, names.part, names.par0, names.par1}
	private := append(slices.Clone(own), n.par.Var)
	begin, end, step := "0", fmt.Sprintf("numaopt_phases(%s) - 1", m.dist()), ""
	if n.ser != nil {
		own = append(own, names.ser0, names.ser1)
		private = append(slices.Clone(own), n.par.Var, n.ser.Var)
		if n.ser.Down {
			begin, end, step = end, begin, ", -1"
		}
	}
	b := &lines{unit: "  "}
	b.blockFortran(own)
	if n.team {
		b.add("!$omp parallel %s", privateClause(n.clauses, private))
	}
	b.open("do %s = %s, %s%s", names.phase, begin, end, step)
	if n.ser != nil {
		b.add("call numaopt_phase(%s, NUMAOPT_%s, %s, %s, %s, %s, %s)", m.dist(), axisName[u.axis], names.phase, n.ser.Lo, n.ser.Hi, names.ser0, names.ser1)
	}
	around := n.outer && !n.apart
	if around {
		b.open("%s", do(n.ser, names.ser0, names.ser1))
	}
	b.partsFortran(names, m.dist(), u.axis, n.par.Lo, n.par.Hi)
	if n.outer && !around {
		b.open("%s", do(n.ser, names.ser0, names.ser1))
	}
	b.add("%s", do(n.par, names.par0, names.par1))
	if n.ser == nil || n.outer {
		b.raw(n.file.text[n.par.start:n.par.end])
	} else {
		head := n.file.text[n.ser.head:n.ser.start]
		indent := head[:len(head)-len(strings.TrimLeft(head, " \t"))]
		rest := n.file.text[n.ser.start:n.par.end]
		if !strings.HasSuffix(head, "\n") { // another statement follows in the line
			line := n.file.text[n.file.lines[n.ser.Line-1]:]
			rest = line[:len(line)-len(strings.TrimLeft(line, " \t"))] + strings.TrimLeft(rest, " \t")
		}
		b.raw(n.file.text[n.par.start:n.ser.head] + indent + do(n.ser, names.ser0, names.ser1) + "\n" + rest)
	}
	b.add("end do")
	if n.outer && !around {
		b.close("end do")
	}
	b.add("%[1]s = %[1]s + 1", names.part)
	b.close("end do")
	b.add("!$omp barrier")
	if around {
		b.close("end do")
	}
	b.close("end do")
	if n.team {
		b.add("!$omp end parallel")
	}
	b.close("end block")
	return b.String()
}

// partsFortran begins the loop over a thread's parts.
func (b *lines) partsFortran(n names, dist string, axis int, lo, hi string) {
	b.add("%s = 0", n.part)
	b.add("do while (numaopt_part(%s, NUMAOPT_%s, %s, %s, %s, &", dist, axisName[axis], n.phase, lo, hi)
	b.depth++
	b.add("  omp_get_thread_num(), omp_get_num_threads(), %s, %s, %s))", n.part, n.par0, n.par1)
}

// skeletonFortran is skeletonC for Fortran.
func (x *family) skeletonFortran(u *use, m *member) string {
	s := x.serial(u)
	p := strings.ToLower(axisName[u.axis])
	names := newNames("", p, strings.ToLower(axisName[max(s, 0)]))
	own := []string{names.phase, names.part, names.par0, names.par1, names.ser0, names.ser1}
	b := &lines{unit: "  "}
	b.add("! %s", x.stands(u))
	b.blockFortran(own)
	if !u.inside {
		b.add("!$omp parallel private(%s)", strings.Join(own, ", "))
	}
	par := side(u.par, u.axis, "last")
	for _, l := range u.sweepsOf() {
		begin, end, step := "0", fmt.Sprintf("numaopt_phases(%s) - 1", m.dist()), ""
		if l != nil && l.Down {
			begin, end, step = end, begin, ", -1"
		}
		b.open("do %s = %s, %s%s", names.phase, begin, end, step)
		if s >= 0 {
			ser := side(l, s, "last")
			b.add("call numaopt_phase(%s, NUMAOPT_%s, %s, %s, %s, %s, %s)", m.dist(), axisName[u.axis], names.phase, ser.lo, ser.hi, names.ser0, names.ser1)
		}
		b.partsFortran(names, m.dist(), u.axis, par.lo, par.hi)
		b.add("! %s, for %s from %s to %s", bodyOf(l), par.index, names.par0, names.par1)
		if s >= 0 {
			b.add("! and %s from %s to %s%s", side(l, s, "last").index, names.ser0, names.ser1, way(l))
		}
		b.add("%[1]s = %[1]s + 1", names.part)
		b.close("end do")
		b.add("!$omp barrier")
		b.close("end do")
	}
	if !u.inside {
		b.add("!$omp end parallel")
	}
	b.close("end block")
	return b.String()
}
