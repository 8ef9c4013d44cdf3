package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mostOf is the share, in [0,1], of the remote accesses that a statement on first
// touches must cover: the rest of them may be as it is.
const mostOf = 0.8

// remoteText is the first half of the verdict: which share is remote, of which objects,
// and who touched these first.
func remoteText(r *Report) string {
	return fmt.Sprintf("%v of %s %s are remote%s", r.RemoteDRAM, count(r.DRAMAccesses), r.counted(), culpritText(r))
}

// culpritText names the objects that most remote accesses go to; it is empty where
// nothing is to be said of them.
func culpritText(r *Report) string {
	objects := slices.Clone(r.Objects)
	slices.SortStableFunc(objects, func(a, b Object) int { return cmp.Compare(b.remote, a.remote) })
	total := r.DRAM.Remote
	if total == 0 || len(objects) == 0 {
		return ""
	}
	var list []Object
	var remote uint64
	for _, o := range objects[:min(len(objects), mostNames)] {
		if float64(o.remote) >= worthNaming*float64(total) {
			list, remote = append(list, o), remote+o.remote
		}
	}
	if len(list) == 0 {
		return fmt.Sprintf("; they go to %d objects, at most %v of them to one", len(objects), pct(objects[0].remote, total))
	}
	var called []string
	for _, o := range list {
		called = append(called, o.Name)
	}
	share := pct(remote, total).String() + " of them are"
	if remote == total {
		share = "all of them"
	}
	return fmt.Sprintf("; %s to %s%s", share, names(called), touchedText(r, list, remote))
}

// touchedText says who touched objects first and where, if that is one statement for
// most of their remote accesses; what the program itself placed lies elsewhere.
func touchedText(r *Report, objects []Object, remote uint64) string {
	var told float64
	var by []string
	places := make(map[string][]string) // by who
	for _, o := range objects {
		f, of := mainTouch(r, o.Name)
		if o.Placed || f == nil || f.Place == "" {
			continue
		}
		told += of
		who := ranksName(f.Ranks)
		if !slices.Contains(by, who) {
			by = append(by, who)
		}
		if !slices.Contains(places[who], f.Place) {
			places[who] = append(places[who], f.Place)
		}
	}
	if told < mostOf*float64(remote) || len(by) > 2 {
		return ""
	}
	for i, who := range by {
		by[i] = fmt.Sprintf("by %s at %s", who, names(places[who]))
	}
	return ", first touched " + strings.Join(by, " and ")
}

// mainTouch is the first touch of the object to which most of its remote accesses go,
// and how many these are.
func mainTouch(r *Report, object string) (most *FirstTouch, remote float64) {
	for i := range r.FirstTouch {
		f := &r.FirstTouch[i]
		if n := float64(f.DRAM) * float64(f.RemoteDRAM) / 100; f.Object == object && n > remote {
			most, remote = f, n
		}
	}
	return most, remote
}

// ranksName says who the ranks of a FirstTouch are.
func ranksName(ranks string) string {
	switch {
	case ranks == "0":
		return rankName(0)
	case strings.ContainsAny(ranks, ",-"):
		return "threads " + ranks
	}
	return "thread " + ranks
}
