package sample

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"numaopt/internal/arena"
	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
	"numaopt/internal/profile"
)

// from is a sample by another instruction.
func from(ip uint64, s perfdata.Sample) perfdata.Sample {
	s.IP = ip
	return s
}

func usesOf(t *testing.T, table *Table) (out []string) {
	t.Helper()
	if err := table.EachUse(func(u *arena.Use) {
		out = append(out, fmt.Sprintf("%#x of %d/%#x op %d: %d local %d remote %d unknown, %d loads %d cycles", u.Code.VAddr, u.Owner, u.Page, u.Op, u.Local, u.Remote, u.Unknown, u.Loads, u.Latency))
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// TestUses: accesses to DRAM are added up by instruction, object and operation, and are
// local as the sample says, whatever others say of the page.
func TestUses(t *testing.T) {
	w := recording()
	w.Mmap(100, 100, 3, 0x400000, 0x2000, 0, "/nowhere/app")
	w.Add(pt.Variable{},
		at(100, 0, 10, heapA, localRAM, 200),
		at(100, 0, 11, heapA+4096, localRAM, 300),
		at(100, 0, 12, heapA, remoteRAM, 400),
		from(0x401008, at(100, 0, 13, heapA, localRAM, 0)), // without a latency
		at(101, 2, 20, heapA+64, hitL1, 5),                 // no access to DRAM
		from(0x401010, at(101, 2, 600, heapB, remoteRAM, 300)),
		at(100, 0, 700, 0x1000, localRAM, 60), // of no mapping
	)
	table, _ := read(t, w, Options{})
	want := []string{
		"0x1000 of 0/0x0 op 0: 1000 local 0 remote 0 unknown, 1000 loads 60000 cycles",
		"0x1000 of 1/0x0 op 0: 0 local 1000 remote 0 unknown, 1000 loads 400000 cycles",
		"0x1000 of 1/0x0 op 0: 2000 local 0 remote 0 unknown, 2000 loads 500000 cycles",
		"0x1008 of 1/0x0 op 0: 1000 local 0 remote 0 unknown, 0 loads 0 cycles",
		"0x1010 of 2/0x0 op 0: 0 local 1000 remote 0 unknown, 1000 loads 300000 cycles",
	}
	got := usesOf(t, table)
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestIntervals: what threads did is told by the time since the first sample, in parts
// that become as long as the recording needs.
func TestIntervals(t *testing.T) {
	const second = 1_000_000_000
	w := recording()
	for i := range uint64(3000) { // a thread for 3 s, another in the last
		w.Add(pt.Variable{}, at(100, 0, 5*second+i*second/1000, heapA, localRAM, 200))
		if i >= 2000 {
			w.Add(pt.Variable{}, at(101, 2, 5*second+i*second/1000, heapA, hitL1, 5), at(101, 2, 5*second+i*second/1000, heapA, remoteRAM, 400))
		}
	}
	table, _ := read(t, w, Options{Workers: 2})
	type sum struct{ work, dram uint64 }
	got := map[string]sum{}
	var shift, last int
	if err := table.EachInterval(func(v *arena.Interval) {
		shift, last = v.Shift, max(last, v.Part)
		when := "early"
		if v.Part<<v.Shift >= 2*second-1<<v.Shift {
			when = "late"
		}
		for home, n := range v.Count {
			k := fmt.Sprintf("thread %d, home %d, %s", v.Thread, home, when)
			s := got[k]
			s.dram += n
			if home == cmp.Or(v.Home+1, len(v.Count))-1 {
				s.work += v.Work
			}
			if s != (sum{}) {
				got[k] = s
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if last >= profile.MostIntervals || last < profile.MostIntervals/2 || shift < firstShift {
		t.Errorf("%d parts of 1<<%d ns", last+1, shift)
	}
	early, late := got["thread 0, home 0, early"], got["thread 0, home 0, late"]
	if early.work+late.work != 3_000_000 || late.work < 1_000_000 || late.work > 1_010_000 || early.dram != early.work {
		t.Errorf("thread 0: %+v, %+v", early, late)
	}
	if d := gocmp.Diff(map[string]sum{
		"thread 0, home 0, early": early, "thread 0, home 0, late": late,
		"thread 1, home 0, late": {1_000_000, 1_000_000}, "thread 1, home 2, late": {1_000_000, 0},
	}, got, gocmp.AllowUnexported(sum{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestIntervalsCrowd: what waits to be added up does not grow with the samples.
func TestIntervalsCrowd(t *testing.T) {
	var v intervals
	for i := range uint64(3 * crowd) {
		c := tally{tallyKey: tallyKey{a: v.at(i), b: i % 1000}, all: 1}
		v.recent.add(&c, v.put)
	}
	v.recent.leave(v.put)
	sum := uint64(0)
	for i := range v.list {
		sum += v.list[i].all
	}
	if sum != 3*crowd || len(v.list) > crowd+crowd/2 {
		t.Errorf("%d accesses of %d, in %d cells", sum, 3*crowd, len(v.list))
	}
}
