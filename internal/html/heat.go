package html

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"numaopt/internal/access"
	"numaopt/internal/heat"
	"numaopt/internal/profile"
	"numaopt/internal/report"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

const (
	// mostMaps is how many objects have a map; those behind make less than a
	// hundredth of the accesses of most programs.
	mostMaps = 40
	// heatBytes is what all maps take in JSON. The next map gets a quarter of what is
	// left, and leastHeat at least: an overview.
	heatBytes = 1_500_000
	leastHeat = 20_000
)

// column is a column of every map.
type column struct {
	Node int    `json:"node"`
	Name string `json:"name"`
}

// heatMap is the map of one object. Rows are tiles: [column, DRAM, all accesses, …],
// and homes of tiles: [node, pages, …], where node -1 is not known.
type heatMap struct {
	Object int      `json:"object"` // index in the table of objects
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Pages  int      `json:"pages"`
	Tile   int      `json:"tile"`
	Rows   [][]num  `json:"rows"`
	Homes  [][]num  `json:"homes"`
	About  []detail `json:"about"`
}

// detail is what else to know of an object.
type detail struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// num is a number that JSON has to three digits, large ones as 123e4.
type num float64

// MarshalJSON is for page.js, which reads counts to three digits.
func (n num) MarshalJSON() ([]byte, error) {
	if f := math.Abs(float64(n)); f < 10_000 {
		return strconv.AppendInt(nil, int64(n), 10), nil
	}
	e := int(math.Log10(math.Abs(float64(n)))) - 2
	return fmt.Appendf(nil, "%.0fe%d", float64(n)/math.Pow10(e), e), nil
}

// heat maps the objects of the report that have room.
func (d *data) heat(in *Input) {
	p, r := in.Profile, in.Report
	groups, _ := access.Groups(p)
	shown := mapped(groups, r)
	maps := heat.Of(p, groups, shown, heat.DefaultOptions())
	left := heatBytes
	d.Heat = []*heatMap{}
	for i := range maps {
		if left < leastHeat {
			maps = maps[:i]
			break
		}
		m, size := fitted(&maps[i], max(leastHeat, left/4))
		left -= size
		m.Object, m.Name, m.Kind = i, middle(r.Objects[i].Name, longName), r.Objects[i].Kind
		m.About = about(r, i)
		d.Heat = append(d.Heat, m)
	}
	if len(maps) > 0 {
		d.Columns = columns(maps[0].Columns)
	}
	if more := len(r.Objects) - len(maps); more > 0 {
		d.HeatCut = fmt.Sprintf("The first %d objects of the table have a map, %d have none.", len(maps), more)
	}
}

// mapped is the groups of the first objects of r.
func mapped(groups []access.Group, r *report.Report) []int {
	type key struct{ kind, name string }
	index := make(map[key]int, len(groups))
	for i := range groups {
		index[key{string(groups[i].Kind), groups[i].Name}] = i
	}
	var list []int
	for i := range r.Objects[:min(len(r.Objects), mostMaps)] {
		list = append(list, index[key{r.Objects[i].Kind, r.Objects[i].Name}])
	}
	return list
}

func columns(list []heat.Column) []column {
	out := []column{}
	for _, c := range list {
		what := "thread "
		if len(c.Ranks) > 1 {
			what = "threads "
		}
		out = append(out, column{int(c.Node), what + topo.FormatList(c.Ranks)})
	}
	return out
}

// fitted is m with as many tiles as fit in most bytes of JSON, and the bytes.
func fitted(m *heat.Map, most int) (*heatMap, int) {
	for tiles := m.Tiles(); ; tiles /= 2 {
		out := tiled(m.Coarser(tiles))
		text, err := json.Marshal([]any{out.Rows, out.Homes})
		if err != nil {
			panic(err) // there is nothing in it that JSON has not
		}
		if len(text) <= most || tiles <= 1 {
			return out, len(text)
		}
	}
}

func tiled(m *heat.Map) *heatMap {
	out := &heatMap{Pages: m.Pages, Tile: m.Tile, Rows: [][]num{}, Homes: [][]num{}}
	n := len(m.Columns)
	for t := range m.Tiles() {
		row, home := []num{}, []num{}
		for c := range n {
			if all := m.All[t*n+c]; all > 0 {
				row = append(row, num(c), num(m.DRAM[t*n+c]), num(all))
			}
		}
		for node := range m.Nodes + 1 {
			if pages := m.Homes[t*(m.Nodes+1)+node]; pages > 0 {
				home = append(home, num(known(node, m.Nodes)), num(pages))
			}
		}
		out.Rows, out.Homes = append(out.Rows, row), append(out.Homes, home)
	}
	return out
}

// known is the node, -1 behind the last.
func known(node, nodes int) int {
	if node == nodes {
		return -1
	}
	return node
}

// about is what the report says of an object beside its row.
func about(r *report.Report, i int) []detail {
	o := &r.Objects[i]
	list := []detail{{"size", fmt.Sprintf("%v, %v of it touched", units.Bytes(o.Bytes), units.Bytes(o.TouchedBytes))}}
	add := func(name, text string) {
		if text != "" {
			list = append(list, detail{name, middle(text, longest)})
		}
	}
	if s := o.Shape; s != nil {
		add("array", fmt.Sprintf("%s%v of %d bytes each (%s)", s.Variable, s.Dims, s.Elem, s.Source))
	}
	if !profile.Kind(o.Kind).Private() {
		add("allocated at", whole(o.Stack))
	}
	for k, found := 0, 0; k < len(r.FirstTouch) && found < 4; k++ {
		if f := &r.FirstTouch[k]; f.Object == o.Name {
			found++
			add("first touched at", fmt.Sprintf("%s by thread %s: %v, %v of its accesses remote", f.Place, f.Ranks, units.Bytes(f.Bytes), f.RemoteDRAM))
		}
	}
	add("conflict", o.ConflictText)
	return list
}
