package export

import (
	"io"
	"path"
	"strings"

	pprof "github.com/google/pprof/profile"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// The sample types, in the order of a sample's values. Those of lines are there only
// in profiles that know lines of source. DRAM latency is of what DRAM served.
const (
	accesses = iota
	remoteAccesses
	latency
	dram
	remoteDRAM
	dramLatency
	tableTypes // how many there are of the table
)

const (
	lineDRAM = tableTypes + iota
	lineRemoteDRAM
	lineLatency
)

var sampleTypes = []*pprof.ValueType{
	{Type: "accesses", Unit: "count"}, {Type: "remote_accesses", Unit: "count"}, {Type: "latency", Unit: "cycles"},
	{Type: "dram", Unit: "count"}, {Type: "remote_dram", Unit: "count"}, {Type: "dram_latency", Unit: "cycles"},
	{Type: "line_dram", Unit: "count"}, {Type: "line_remote_dram", Unit: "count"}, {Type: "line_latency", Unit: "cycles"},
}

// WritePprof writes p as a profile of pprof (gzip-compressed profile.proto).
//
// There are two families of samples, each of which has all accesses that it knows.
// Those of the table say which function or loop, and by labels which thread used
// which object from where. Those of lines, by the sample types line_*, say which line
// of source, for DRAM accesses, of all threads. A sample type belongs to one family,
// and in samples of the other it is 0: nothing is counted twice.
//
// Labels that google/perf_data_converter has are named as there: cpu, data_src with
// its words ("L1" to "L3", "Local DRAM", "Remote DRAM"; here also "DRAM" where the
// home is not known), comm. The others are object, kind, allocated (the call stack,
// innermost first), loop (or function), op, thread (the rank), node and home.
func WritePprof(w io.Writer, p *profile.Profile) error { return buildPprof(p).Write(w) }

func buildPprof(p *profile.Profile) *pprof.Profile {
	b := newPprofBuilder(p)
	b.table()
	b.lines()
	return b.out
}

// pprofBuilder collects samples and what they refer to.
type pprofBuilder struct {
	p       *profile.Profile
	out     *pprof.Profile
	groups  []access.Group
	groupOf []int
	regions []string // names

	mappings  map[int]*pprof.Mapping // by module
	functions map[pprof.Function]*pprof.Function
	locations map[codeKey]*pprof.Location
	// Samples share their labels, of which there are far fewer.
	texts   map[labels]map[string][]string
	numbers map[where]map[string][]int64
}

// codeKey is a location: an address with its line or, where none is known, a name.
type codeKey struct {
	module int
	offset uint64
	line   int
	name   string
}

func newPprofBuilder(p *profile.Profile) *pprofBuilder {
	types, byDefault := sampleTypes[:tableTypes], remoteDRAM
	if len(p.CodeUses) > 0 {
		types, byDefault = sampleTypes, lineRemoteDRAM
	}
	b := &pprofBuilder{
		p: p, mappings: map[int]*pprof.Mapping{}, functions: map[pprof.Function]*pprof.Function{}, locations: map[codeKey]*pprof.Location{},
		texts: map[labels]map[string][]string{}, numbers: map[where]map[string][]int64{},
		out: &pprof.Profile{
			SampleType: types, DefaultSampleType: sampleTypes[byDefault].Type,
			PeriodType: &pprof.ValueType{Type: "accesses", Unit: "count"}, Period: int64(max(1, p.Run.Period)),
			DurationNanos: p.Run.Elapsed.Nanoseconds(), Comments: comments(p),
		},
	}
	if !p.Run.Start.IsZero() {
		b.out.TimeNanos = p.Run.Start.UnixNano()
	}
	if len(p.Modules) > 0 {
		b.mapping(0) // pprof takes the first mapping for the program
	}
	b.groups, b.groupOf = access.Groups(p)
	b.regions = findNames(p).regions
	return b
}

// comments say where the profile comes from.
func comments(p *profile.Profile) []string {
	list := []string{
		"numaopt " + p.Run.Version, "command: " + strings.Join(p.Run.Command, " "),
		"source: " + p.Run.Source, "topology: " + p.Run.Topology.String(),
	}
	for i, c := range list {
		list[i] = valid(c)
	}
	return list
}

// cell is what the samples of the table are sums over.
type cell struct {
	group          int
	thread, region int32
	home           topo.NodeID
	op             profile.Op
	level          profile.Level
}

func (b *pprofBuilder) table() {
	p := b.p
	sums := map[cell]*pprof.Sample{}
	for i := range p.Rows {
		r := &p.Rows[i]
		page := &p.Pages[r.Page]
		k := cell{b.groupOf[page.Object], r.Thread, r.Region, page.Home, r.Op, r.Level}
		s := sums[k]
		if s == nil {
			s = b.tableSample(k)
			sums[k] = s
		}
		node := p.Threads[r.Thread].Node
		add(s.Value[accesses:], r.Count, r.Latency, page.Home != topo.Unknown && page.Home != node)
		if r.Level == profile.DRAM {
			add(s.Value[dram:], r.Count, r.Latency, page.Home != topo.Unknown && page.Home != node)
		}
	}
}

// add adds to the three values of accesses of some kind.
func add(values []int64, count, cycles uint64, remote bool) {
	values[accesses] += int64(count)
	values[latency] += int64(cycles)
	if remote {
		values[remoteAccesses] += int64(count)
	}
}

// tableSample adds the sample of k, of value 0.
func (b *pprofBuilder) tableSample(k cell) *pprof.Sample {
	thread := &b.p.Threads[k.thread]
	s := b.sample(b.region(int(k.region)), labels{k.group, k.region, k.op, levelSource(k.level, k.home, thread.Node)})
	w := where{k.thread, k.home}
	if b.numbers[w] == nil {
		b.numbers[w] = map[string][]int64{"thread": {int64(thread.Rank)}, "cpu": {int64(thread.CPU)}, "node": {int64(thread.Node)}}
		if k.home != topo.Unknown {
			b.numbers[w]["home"] = []int64{int64(k.home)}
		}
	}
	s.NumLabel, s.NumUnit = b.numbers[w], numberUnits
	return s
}

// numberUnits are the units of numeric labels.
var numberUnits = map[string][]string{"thread": {"rank"}, "cpu": {"cpu"}, "node": {"node"}, "home": {"node"}}

// levelSource is the data_src of an access.
func levelSource(level profile.Level, home, node topo.NodeID) string {
	switch {
	case level == profile.LLC:
		return "L3"
	case level != profile.DRAM:
		return levels[level]
	case home == topo.Unknown:
		return "DRAM"
	case home == node:
		return "Local DRAM"
	}
	return "Remote DRAM"
}

// labels are what the text labels of a sample say.
type labels struct {
	group  int
	region int32
	op     profile.Op
	source string
}

// where is what the numeric labels of a sample say.
type where struct {
	thread int32
	home   topo.NodeID
}

// sample adds a sample, of value 0.
func (b *pprofBuilder) sample(at *pprof.Location, l labels) *pprof.Sample {
	if b.texts[l] == nil {
		b.texts[l] = b.text(l)
	}
	s := &pprof.Sample{Location: []*pprof.Location{at}, Value: make([]int64, len(b.out.SampleType)), Label: b.texts[l]}
	b.out.Sample = append(b.out.Sample, s)
	return s
}

func (b *pprofBuilder) text(l labels) map[string][]string {
	g := &b.groups[l.group]
	text := map[string][]string{
		"object": {valid(g.Name)}, "kind": {string(g.Kind)}, "loop": {b.regions[l.region]}, "op": {ops[l.op]}, "data_src": {l.source},
	}
	if stack := b.allocated(g.Objects[0]); stack != "" {
		text["allocated"] = []string{stack}
	}
	if c := b.p.Run.Command; len(c) > 0 {
		text["comm"] = []string{valid(path.Base(c[0]))}
	}
	return text
}

// allocated is the call stack of an object's allocation, innermost first.
func (b *pprofBuilder) allocated(object int) string {
	site := b.p.Objects[object].Site
	if site < 0 {
		return ""
	}
	var frames []string
	for _, f := range b.p.Sites[site].Frames {
		frames = append(frames, valid(access.CodeName(b.p, f)))
	}
	return strings.Join(frames, " < ")
}

// lines adds the samples of lines of source.
func (b *pprofBuilder) lines() {
	for i := range b.p.CodeUses {
		u := &b.p.CodeUses[i]
		s := b.sample(b.code(b.p.Codes[u.Code], b.instruction(u)), labels{b.groupOf[u.Object], u.Region, u.Op, "DRAM"})
		s.Value[lineDRAM], s.Value[lineRemoteDRAM] = int64(u.Total()), int64(u.Remote)
		s.Value[lineLatency] = int64(u.Latency)
	}
}

// instruction is what a reader calls the code of u where no line of it is known.
func (b *pprofBuilder) instruction(u *profile.CodeUse) pprof.Function {
	c := b.p.Codes[u.Code]
	switch {
	case c.Symbol != "":
		return pprof.Function{Name: valid(symbol.Demangle(c.Symbol)), SystemName: valid(c.Symbol)}
	case c.Module >= 0:
		return pprof.Function{Name: valid(path.Base(b.p.Modules[c.Module].Path))}
	}
	return pprof.Function{Name: b.regions[u.Region]}
}

// region is the location of a loop's or function's code. A worksharing loop has a line
// of its own.
func (b *pprofBuilder) region(i int) *pprof.Location {
	r := &b.p.Regions[i]
	code := r.Code
	if r.Worksharing() {
		code = r.Site
	}
	return b.code(code, pprof.Function{Name: b.regions[i], SystemName: valid(r.Code.Symbol), Filename: valid(r.File)})
}

// code is the location of c, of which otherwise is known where there is no line.
func (b *pprofBuilder) code(c ident.Code, otherwise pprof.Function) *pprof.Location {
	k := codeKey{c.Module, c.Offset, 0, otherwise.Name}
	if len(c.Inlined) > 0 {
		k.line, k.name = c.Inlined[0].Line, ""
	}
	if at := b.locations[k]; at != nil {
		return at
	}
	at := &pprof.Location{ID: uint64(len(b.out.Location) + 1), Line: b.sourceLines(c, otherwise)}
	if c.Module >= 0 && c.Module < len(b.p.Modules) {
		at.Mapping = b.mapping(c.Module)
		at.Address = at.Mapping.Start + c.Offset
		at.Mapping.Limit = max(at.Mapping.Limit, at.Address+1)
	}
	b.locations[k] = at
	b.out.Location = append(b.out.Location, at)
	return at
}

// sourceLines are the lines of c, innermost inlined function first.
func (b *pprofBuilder) sourceLines(c ident.Code, otherwise pprof.Function) []pprof.Line {
	var lines []pprof.Line
	for _, l := range c.Inlined {
		f := pprof.Function{Name: valid(l.Function), SystemName: valid(l.Function), Filename: valid(l.File), StartLine: int64(l.FunctionLine)}
		lines = append(lines, pprof.Line{Function: b.function(f), Line: int64(l.Line)})
	}
	if len(lines) == 0 {
		lines = []pprof.Line{{Function: b.function(otherwise)}}
	}
	return lines
}

func (b *pprofBuilder) function(f pprof.Function) *pprof.Function {
	if old := b.functions[f]; old != nil {
		return old
	}
	made := f
	made.ID = uint64(len(b.out.Function) + 1)
	b.functions[f] = &made
	b.out.Function = append(b.out.Function, &made)
	return &made
}

// moduleSpace is the address space that each module gets in the profile: it has
// offsets, and pprof wants addresses. No file is larger.
const moduleSpace = 1 << 40

func (b *pprofBuilder) mapping(module int) *pprof.Mapping {
	m := b.mappings[module]
	if m == nil {
		x := &b.p.Modules[module]
		id, _ := strings.CutPrefix(x.BuildID, ident.ContentPrefix)
		start := uint64(module+1) * moduleSpace
		m = &pprof.Mapping{
			ID: uint64(len(b.out.Mapping) + 1), Start: start, Limit: start + 1, File: valid(x.Path), BuildID: valid(id),
			// pprof need not, and with these addresses could not, look names up itself.
			HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
		}
		b.mappings[module] = m
		b.out.Mapping = append(b.out.Mapping, m)
	}
	return m
}
