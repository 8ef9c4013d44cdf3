package html

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/annotate"
	"numaopt/internal/report"
)

const (
	// around is how many lines of source stand above and below one that accesses DRAM:
	// the loops around it, mostly.
	around = 8
	// mostFiles is the files that are shown, mostSource the bytes of all of them.
	mostFiles  = 40
	mostSource = 4_000_000
	// leastLine is the share of the DRAM accesses, in per cent, from which on a line is
	// shown for its own sake.
	leastLine = 0.1
)

// Source is the text of a source file.
type Source struct {
	Text []byte
	// Doubt is why the text may not be what was compiled, or why there is none.
	Doubt string
}

// sourceFile is a file with what its lines access.
type sourceFile struct {
	Path, Doubt string
	DRAM        report.Pct
	Lines       []sourceLine
}

// sourceLine is a line of source, or a gap between such lines.
type sourceLine struct {
	Number       int // 0 is a gap
	Text         string
	DRAM, Remote cell // empty where the line accesses nothing
	Cycles       string
	Hot          bool
}

// shareOf is a part of all DRAM accesses.
type shareOf func(access.Flow) report.Pct

// annotated fills the table of lines, and the source where it is asked for.
func (p *page) annotated(in *Input) {
	groups, groupOf := access.Groups(in.Profile)
	lines := annotate.Lines(in.Profile, groupOf)
	total := float64(max(1, in.Report.DRAMAccesses))
	share := func(f access.Flow) report.Pct { return report.Pct(100 * float64(f.Total()) / total) }
	p.Source = lineTable(in.Report, lines, groups, share)
	p.Timed = slices.ContainsFunc(lines, func(l annotate.Line) bool { return l.Loads > 0 })
	if in.Source != nil {
		p.embedSource(in, annotate.Files(lines), share)
	}
}

func lineTable(r *report.Report, lines []annotate.Line, groups []access.Group, of shareOf) *table {
	t := &table{ID: "source", Caption: "Lines of source", Columns: []heading{
		{"line", "", false},
		share(r),
		{"remote %", "of the line's own DRAM accesses", true},
		{"store %", "of the line's DRAM accesses", true},
		{"cycles a load", "mean latency of its loads from DRAM", true},
		{"objects", "that it accesses, most first", false},
	}}
	return t.fill(len(lines), func(i int) row {
		l := &lines[i]
		stores := report.Pct(access.Pct(l.Stores, l.DRAM.Total()))
		return row{Cells: []cell{
			name(l.Name), percent(of(l.DRAM)), percent(report.Pct(l.DRAM.RemotePct())), percent(stores),
			{Text: cycles(l), Sort: sortKey(l.Latency())}, {Text: accessed(l, groups)},
		}}
	}, func(i int) report.Pct { return of(lines[i].DRAM) })
}

// embedSource takes in the text of files, those with most DRAM accesses first.
func (p *page) embedSource(in *Input, files []annotate.File, share shareOf) {
	left := mostSource
	for i := range files[:min(len(files), mostFiles)] {
		f := &files[i]
		if share(f.DRAM) < leastLine {
			break
		}
		s := sourceFile{Path: middle(f.Path, longest), DRAM: share(f.DRAM)}
		text := in.Source(f.Path)
		if s.Doubt = text.Doubt; left <= 0 {
			s.Doubt = "left out: the page has no room for more source"
		} else if text.Text != nil {
			s.annotate(f, string(text.Text), share)
		}
		for _, l := range s.Lines {
			left -= len(l.Text) + 100
		}
		p.Sources = append(p.Sources, s)
	}
}

// annotate puts the lines of text that access DRAM, and those around them, into s.
func (s *sourceFile) annotate(f *annotate.File, text string, share shareOf) {
	all := strings.Split(strings.ToValidUTF8(text, "�"), "\n")
	at := make(map[int]*annotate.Line)
	shown := make([]bool, len(all)+2)
	for i := range f.Lines {
		l := &f.Lines[i]
		if share(l.DRAM) < leastLine {
			continue
		}
		if at[l.Line] = l; l.Line > len(all) {
			s.Doubt = "the file has fewer lines than the program was compiled from"
			continue
		}
		for n := max(1, l.Line-around); n <= min(len(all), l.Line+around); n++ {
			shown[n] = true
		}
	}
	for n := 1; n <= len(all); n++ {
		switch {
		case shown[n]:
			s.Lines = append(s.Lines, line(n, all[n-1], at[n], share))
		case shown[n-1]:
			s.Lines = append(s.Lines, sourceLine{})
		}
	}
}

func line(n int, text string, l *annotate.Line, share shareOf) sourceLine {
	x := sourceLine{Number: n, Text: middle(strings.TrimRight(text, "\r"), longest)}
	if l != nil {
		x.Hot, x.Cycles = true, cycles(l)
		x.DRAM, x.Remote = percent(share(l.DRAM)), percent(report.Pct(l.DRAM.RemotePct()))
	}
	return x
}

func cycles(l *annotate.Line) string {
	if c := l.Latency(); !math.IsNaN(c) {
		return fmt.Sprintf("%.0f", c)
	}
	return ""
}

// accessed is the objects of a line, each with its remote share.
func accessed(l *annotate.Line, groups []access.Group) string {
	var list []string
	for i, o := range l.Objects {
		if i == 4 {
			list = append(list, fmt.Sprintf("%d more", len(l.Objects)-i))
			break
		}
		text := middle(groups[o.Group].Name, 60)
		if o.DRAM.Known() > 0 {
			text += fmt.Sprintf(" (%v remote)", report.Pct(o.DRAM.RemotePct()))
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}
