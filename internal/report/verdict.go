package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"numaopt/internal/units"
)

// The verdict speaks of what is at least this much, in points of the program's
// DRAM accesses (goodRemote: per cent of them). They are set by what a reader
// would act on, not by measurement.
const (
	goodRemote  = 5   // fewer remote accesses than this are not worth a plan
	worthSaying = 1   // a fault that costs less is left to the tables
	worthMoving = 2   // the same for data on the wrong node
	worthEven   = 5   // the same for what page placement cannot help
	worthNaming = 0.2 // a loop's share of a fault, in [0,1], from which on it is named
	worthDoubt  = 25  // per cent of what placement wins that chance must be to doubt it
	crowded     = 1.5 // controller imbalance from which on it is mentioned
	mostNames   = 3   // objects of one kind of finding that are named
)

// verdict is the one sentence that the reader came for.
func verdict(r *Report) string {
	switch best := r.BestPlacement; {
	case r.Accesses == 0:
		return "No access to memory was recorded."
	case r.Run.Nodes < 2:
		return "The program saw one node: every access is local. Profile it with --topology 4x2 to see how it does on four nodes."
	case !r.Quality.Enough:
		return "No verdict: " + r.Quality.Reason + "."
	case r.RemoteDRAM < goodRemote:
		return fmt.Sprintf("Placement is good: %v of %s %s are remote.", r.RemoteDRAM, count(r.DRAMAccesses), r.counted())
	case r.RemoteDRAM-best < worthSaying:
		return fmt.Sprintf("%s; no placement of objects of a page or more makes them fewer (%v at best).", remoteText(r), best)
	default:
		won := cell(r.RemoteDRAM - best)
		if known, looks := chanceGain(r); 100*(known+looks) >= worthDoubt*(r.RemoteDRAM-best) {
			doubt := "work that is handed out at run time uses other pages in each run"
			if looks > known {
				doubt = "much of the work looks handed out at run time, and then it uses other pages in each run"
			}
			return fmt.Sprintf("%s; placing pages would have removed up to %s points in this run, but %s.", remoteText(r), won, doubt)
		}
		return fmt.Sprintf("%s; placing pages removes up to %s points without a source change.", remoteText(r), won)
	}
}

// points is what o's best placement wins, in points of all DRAM accesses.
func (o *Object) points(r *Report) Pct {
	known := sum(o.DRAMByNode) // nearly: unknown homes are few where this matters
	won := o.RemoteDRAM - o.BestPlacement
	if math.IsNaN(float64(won)) {
		return 0 // no home is known
	}
	return won * Pct(known) / Pct(max(1, r.DRAMAccesses))
}

// chanceGain is what the best placement wins on work that OpenMP is known to hand
// out at run time, and on work that looks like it.
func chanceGain(r *Report) (known, looks Pct) {
	for i := range r.Objects {
		o := &r.Objects[i]
		if o.DRAMAccesses == 0 {
			continue // there are no percentages of nothing
		}
		known += o.points(r) * o.known / 100
		looks += o.points(r) * (o.Dynamic - o.known) / 100
	}
	return known, looks
}

// findings are what stands behind the verdict.
func findings(r *Report) []string {
	list := []string{}
	list = append(list, serialFindings(r)...)
	list = append(list, misplacedFindings(r)...)
	list = append(list, stuckFindings(r)...)
	list = append(list, smallFindings(r)...)
	if i := float64(r.Imbalance); i >= crowded && r.RemoteDRAM >= worthSaying {
		cure := ""
		if r.Sharing.dramEven >= worthEven {
			cure = " Interleaving the data that all nodes use alike evens that out."
		}
		list = append(list, fmt.Sprintf("Crowding: the memory of node %d serves %.1f times as many %s as the mean of all %d nodes.%s", busiest(r), i, r.counted(), r.Run.Nodes, cure))
	}
	return list
}

// busiest is the node whose memory serves most DRAM accesses.
func busiest(r *Report) int {
	served := make([]uint64, len(r.Matrix.DRAM))
	for _, row := range r.Matrix.DRAM {
		for j, c := range row {
			served[j] += c
		}
	}
	best := 0
	for j, c := range served {
		if c > served[best] {
			best = j
		}
	}
	return best
}

// chance is how far the use of an object in this run speaks for the next one.
type chance int

const (
	repeats chance = iota
	looks          // most of its work looks handed out at run time
	handed         // OpenMP hands out most of it: a better place for its pages in this run is none in the next
)

func objectChance(r *Report) map[string]chance {
	list := make(map[string]chance)
	for _, o := range r.Objects {
		switch {
		case o.known >= 50:
			list[o.Name] = handed
		case o.Dynamic >= 50:
			list[o.Name] = looks
		}
	}
	return list
}

// unless is put behind what holds only where a guess is wrong.
func (c chance) unless() string {
	if c == looks {
		return ", if its work is not handed out at run time"
	}
	return ""
}

// serialFindings sums serial initialisation up and names what costs most of it:
// what is sure, and what is so unless a guess is right.
func serialFindings(r *Report) []string {
	return append(serialFinding(r, repeats), serialFinding(r, looks)...)
}

func serialFinding(r *Report, want chance) []string {
	var cost uint64
	var pct Pct
	var objects []string
	more, users := 0, 0
	of := objectChance(r)
	for _, s := range r.SerialInit {
		if s.Avoidable == 0 || of[s.Object] != want {
			continue
		}
		cost += s.Avoidable
		pct += s.AvoidablePct
		users = max(users, s.UserNodes)
		if len(objects) == mostNames || !(s.AvoidablePct >= worthSaying) {
			more++
			continue
		}
		objects = append(objects, fmt.Sprintf("%s (%v), first touched at %s by %s on node %d: %v",
			s.Object, units.Bytes(s.FirstTouched), s.Place, rankName(s.Rank), s.Node, s.AvoidablePct))
	}
	if !(pct >= worthSaying) {
		return nil
	}
	if more > 0 {
		objects = append(objects, fmt.Sprintf("%d more", more))
	}
	return []string{fmt.Sprintf(
		"Serial initialisation: %v of all %s (%s) are remote only because one thread touches data first, outside any loop, that %s then use in parallel%s. %s.",
		pct, r.counted(), count(cost), nodes(users), want.unless(), strings.Join(objects, "; "))}
}

// misplacedFindings are objects that another placement helps and that are not
// explained by serial initialisation.
func misplacedFindings(r *Report) []string {
	explained := make(map[string]Pct)
	for _, s := range r.SerialInit {
		explained[s.Object] += s.AvoidablePct
	}
	type gain struct {
		o      Object
		points Pct
	}
	var gains []gain
	of := objectChance(r)
	for _, o := range r.Objects {
		points := o.points(r) - explained[o.Name]
		if points >= worthMoving && of[o.Name] != handed {
			gains = append(gains, gain{o, points})
		}
	}
	slices.SortStableFunc(gains, func(a, b gain) int { return cmp.Compare(b.points, a.points) })
	var list []string
	for _, g := range gains[:min(len(gains), mostNames)] {
		how := "first touched"
		if g.o.Placed {
			how = "placed by the program itself"
		}
		list = append(list, fmt.Sprintf(
			"Wrong node: %s (%v) is %s elsewhere than it is used: %v of its %s are remote, %v would be with its pages on their best nodes%s.",
			g.o.Name, units.Bytes(g.o.TouchedBytes), how, g.o.RemoteDRAM, r.counted(), g.o.BestPlacement, of[g.o.Name].unless()))
	}
	return list
}

// stuckFindings say where page placement cannot help, and what would. Objects
// that suffer from the same loops are one finding.
func stuckFindings(r *Report) []string {
	type finding struct {
		cost     Pct
		objects  []string
		loops    []string
		conflict bool
		chance   chance
	}
	of := objectChance(r)
	index := make(map[string]*finding)
	var found []*finding
	for _, s := range r.Stuck {
		if !(s.RemotePct >= worthSaying) {
			continue
		}
		f := &finding{conflict: s.ConflictPct >= 50, loops: s.mainLoops(), chance: of[s.Object]}
		key := fmt.Sprint(f.conflict, int(f.chance), f.loops)
		if index[key] == nil {
			index[key], found = f, append(found, f)
		}
		index[key].cost += s.RemotePct
		index[key].objects = append(index[key].objects, s.Object)
	}
	slices.SortStableFunc(found, func(a, b *finding) int { return cmp.Compare(b.cost, a.cost) })
	var list []string
	for _, f := range found {
		if f.cost < worthEven || len(list) == mostNames {
			break
		}
		what := fmt.Sprintf("Placement cannot help: %v of all %s, to %s, stay remote with each page on its best node", f.cost, r.counted(), names(f.objects))
		switch {
		case f.chance == handed:
			list = append(list, fmt.Sprintf("%s, because in %s OpenMP hands out the work on it at run time, to other threads each time. A fixed assignment would help: a static schedule, or a queue for each node.", what, names(f.loops)))
		case f.chance == looks:
			list = append(list, fmt.Sprintf("%s, because in %s the work on it looks handed out at run time, to other threads each time. If it is, a fixed assignment would help: a queue for each node.", what, names(f.loops)))
		case f.conflict:
			list = append(list, fmt.Sprintf("%s, because %s %s the data over the nodes in another way than the rest of the program. Only a matching loop schedule could help: numaopt plan looks for one, and plan --explain says why where it finds none.", what, names(f.loops), verb(len(f.loops), "divides", "divide")))
		default:
			list = append(list, fmt.Sprintf("%s, because in %s several nodes use the same pages. It takes another order of the data or of the loop, or a copy for each node if it is only read.", what, names(f.loops)))
		}
	}
	return list
}

// mainLoops are those that make a part of s that is worth naming.
func (s *Stuck) mainLoops() []string {
	var loops []string
	for _, l := range s.Loops {
		if float64(l.Remote) >= worthNaming*float64(s.Remote) {
			loops = append(loops, l.Name)
		}
	}
	slices.Sort(loops)
	return loops
}

func smallFindings(r *Report) []string {
	if !(r.Small.DRAM >= worthEven && r.Small.Remote >= goodRemote) {
		return nil
	}
	return []string{fmt.Sprintf("Small objects: %v of the %s are to objects smaller than a page, %v of them remote; no plan places such objects singly. Allocated and filled by the thread that uses them, or from its own array, they would be local.", r.Small.DRAM, r.counted(), r.Small.Remote)}
}

// count prints a number of accesses to three digits: "12.3 million".
func count(n uint64) string {
	for _, s := range []struct {
		size float64
		name string
	}{{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}} {
		if f := float64(n) / s.size; f >= 1 {
			return strconv.FormatFloat(f, 'f', max(0, 2-int(math.Log10(f))), 64) + " " + s.name
		}
	}
	return thousands(n)
}

func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	if len(s) > 3 {
		return s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return s
}

func sum(list []uint64) (n uint64) {
	for _, x := range list {
		n += x
	}
	return n
}

func rankName(rank int) string {
	if rank == 0 {
		return "the main thread"
	}
	return fmt.Sprintf("thread %d", rank)
}

func nodes(n int) string {
	if n == 1 {
		return "threads of another node"
	}
	return fmt.Sprintf("threads of %d nodes", n)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// names joins up to three names for a sentence.
func names(list []string) string {
	switch n := len(list); {
	case n == 0:
		return "the program"
	case n == 1:
		return list[0]
	case n > mostNames:
		return strings.Join(list[:mostNames-1], ", ") + fmt.Sprintf(" and %d more", n-mostNames+1)
	default:
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
}

// Good reports whether the verdict is that placement is good.
func (r *Report) Good() bool { return r.Quality.Enough && r.Run.Nodes > 1 && r.RemoteDRAM < goodRemote }
