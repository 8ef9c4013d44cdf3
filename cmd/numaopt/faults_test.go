package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"numaopt/internal/access"
	"numaopt/internal/arena"
	"numaopt/internal/classify"
	"numaopt/internal/lab"
	"numaopt/internal/perfdata"
	"numaopt/internal/profile"
	"numaopt/internal/programs"
	"numaopt/internal/sample"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// faultError is how many points faults may be off. Where they are more, the profile
// has to say that it does not know better: a remote share outside of its interval is
// wrong, but for chance, and so are classes, but for nodes that it says may be missed.
const faultError = 5

// beyondChance takes half of a 95 % interval to what one run in a thousand is off.
const beyondChance = 3.29 / 1.96

// faultPrograms are profiled in one guest, one after the other.
var faultPrograms = []struct {
	program, args string
	moves         bool // most pages have one user, to whom balancing moves them
	once          bool // many pages are read once from another node
}{
	{"serial-init", "400 400", true, false},
	{"irregular", "400 512 240", false, false},
	{"heat", "400 150", false, true},
}

// TestFaultsAgainstCounter profiles programs by page faults in a guest of four nodes
// with NUMA balancing, and holds what the profile says of the pages against the lab's
// counter of every access of the same run: shares of pages that are private, used
// from one node, and shared, and the remote share of those that are not private, every
// page weighing the same.
func TestFaultsAgainstCounter(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a guest")
	}
	apps := map[string]string{}
	for _, c := range faultPrograms {
		apps[c.program] = programs.Build(t, c.program, "gcc") + " " + c.args
	}
	counter, machine := faultsInGuest(t, apps)
	for _, c := range faultPrograms {
		t.Run(c.program, func(t *testing.T) {
			p, err := profile.ReadFile(c.program + ".nprof")
			if err != nil {
				t.Fatal(err)
			}
			pages := pagesOf(t, c.program, machine)
			text := strings.Join(p.Warnings, "\n")
			counted, sampled, said := countedShares(pages, counter, 0), sampledShares(p), readFaults(text)
			seen := counted // without what may be missed
			if c.once || !(said.each >= 10) {
				seen = countedShares(pages, counter, said.unseen)
			}
			t.Logf("%d pages; counted %.1f, without what may be missed %.1f; by faults %.1f, %.1f a page", len(pages), counted, seen, sampled, said.each)
			for i, name := range []string{"private", "non-shared", "shared"} {
				if low, high := min(seen[i], counted[i]), max(seen[i], counted[i]); !(sampled[i] >= low-faultError && sampled[i] <= high+faultError) {
					t.Errorf("%s: %.1f %% by page faults, %.1f to %.1f %% counted", name, sampled[i], low, high)
				}
			}
			if access.OnlyFirst(p) || strings.Contains(text, "how far off that is cannot be told") { // a busy host: the kernel did not come to look
				return
			}
			if off := math.Abs(counted[3] - said.remote); !(off <= max(faultError, beyondChance*(said.high-said.low)/2)) {
				t.Errorf("remote: %.1f %% counted, by page faults %.1f %%, %.1f to %.1f", counted[3], said.remote, said.low, said.high)
			}
			for _, want := range []string{"tell no loads from stores, and nothing of caches or latency", "NUMA balancing moved "} {
				if !strings.Contains(text, want) {
					t.Errorf("no warning with %q in:\n%s", want, text)
				}
			}
			if moved := strings.Contains(text, "pages were on several nodes"); c.moves && !moved {
				t.Errorf("nothing of the pages that moved in:\n%s", text)
			}
		})
	}
}

// TestFaultEvents: the kernel's own faults and physical addresses where they are allowed,
// else what anyone may record.
func TestFaultEvents(t *testing.T) {
	for mode, want := range map[string]string{
		"":        "-e minor-faults,major-faults -c 1 --phys-data ",
		"no-phys": "-e page-faults:u -c 1 ",
	} {
		calls := standIn(t, mode)
		sampled(t, fixture(t, "vm", nil), profileOptions{source: sourceFaults, program: []string{"true"}}) //nolint:errcheck // of what the stand-in writes no profile is made
		all := calls()
		if got := strings.Join(all[len(all)-1], " "); !strings.Contains(got, want) || mode != "" && strings.Contains(got, "--phys-data") {
			t.Errorf("%q: perf %s, want %s", mode, got, want)
		}
	}
}

// guestScript prepares the guest for profiles. NUMA balancing looks at memory as often as it
// would look in a run a hundred times as long: the guest is that slow. The kernel ends
// with the lab, and with it what is set here. Each recording and
// the runtime's log are kept by a perf of our own.
const guestScript = `#!/bin/sh -e
unset LD_PRELOAD NUMAOPT_RUN
mount -t debugfs none /sys/kernel/debug
for f in scan_delay_ms scan_period_min_ms scan_period_max_ms; do echo 25 >/sys/kernel/debug/sched/numa_balancing/$f; done
export PATH=$PWD:$PATH TMPDIR=$PWD/tmp
mkdir tmp
profile() {
	KEPT=$PWD/$1.tar taskset -c 0-3 "$NUMAOPT" profile --source faults -o $1.nprof -- $2
}
`

// keepingPerf is perf, and keeps its recording and the runtime's log, of which most is
// a hole. It passes on that it is told to end.
const keepingPerf = `#!/bin/sh
PATH=${PATH#*:}
perf "$@" &
pid=$!
trap 'kill -TERM $pid' TERM INT
while wait $pid; status=$?; kill -0 $pid 2>/dev/null; do :; done
for a; do case $a in */perf.data) tar -cSf $KEPT -C ${a%/*} perf.data -C $PWD/$(echo tmp/numaopt-log-*) .;; esac; done
[ $status = 143 ] && trap - TERM && kill -TERM $$
exit $status
`

// faultsInGuest profiles programs in a guest, each with its arguments, as
// NAME.nprof, on four nodes of one CPU: the kernel interrupts all CPUs to look at a page and
// rests 32 times as long as that took, which with more CPUs than the host's is long. It
// keeps their recordings in the directory NAME, and returns what was counted of all pages
// of the guest.
func faultsInGuest(t *testing.T, apps map[string]string) (*lab.Result, topo.Topology) {
	t.Helper()
	t.Chdir(t.TempDir())
	script := guestScript
	for _, name := range slices.Sorted(maps.Keys(apps)) {
		script += fmt.Sprintf("profile %s '%s'\n", name, apps[name])
	}
	for name, text := range map[string]string{"script": script, "perf": keepingPerf} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("NUMAOPT", filepath.Join(programs.Root(), "build", "numaopt"))
	machine, err := topo.Parse("4x1")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r, err := lab.Run(t.Context(), lab.Options{
		Command: []string{"./script"}, Topology: machine, Bind: lab.BindNone, Caches: topo.DefaultCaches(),
		THP: "never", Memory: 2 * units.GiB, Balancing: true, Once: true, Pages: true, Stdout: &out, Stderr: &out,
		Progress: func(text string) { t.Log(text) }, Lib: filepath.Join(programs.Root(), "build", "lib", "numaopt"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	if r.Status() != 0 {
		t.Fatalf("status %d", r.Status())
	}
	for name := range apps {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("tar", "-xf", name+".tar", "-C", name).CombinedOutput(); err != nil {
			t.Fatalf("tar: %v: %s", err, out)
		}
	}
	return r, machine
}

// pagesOf is the numbers of the pages that a recording has samples of, and whether they
// are of a stack or of the program's image.
func pagesOf(t *testing.T, dir string, machine topo.Topology) map[uint64]bool {
	t.Helper()
	f, err := perfdata.Open(filepath.Join(dir, "perf.data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	logs, err := filepath.Glob(filepath.Join(dir, "log.*"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	program, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(logs[0]), "."))
	if err != nil {
		t.Fatal(err)
	}
	table, _, err := sample.Read(f, sample.Options{Machine: machine, Program: program, Log: filepath.Join(dir, "log")})
	if err != nil {
		t.Fatal(err)
	}
	modules, _ := table.Modules()
	objects, _ := table.Objects()
	private := map[uint64]bool{}
	table.EachPage(func(_ int, p arena.Page) { //nolint:errcheck // memory
		at := p.Number * units.PageSize
		private[p.Number] = objects[p.Object].Kind == arena.KindStack ||
			p.Object == 0 && slices.ContainsFunc(modules, func(m arena.Module) bool { return at+units.PageSize > m.Lo && at < m.Hi })
	})
	return private
}

// sampledShares is the private, non-shared and shared pages of p, in per cent.
func sampledShares(p *profile.Profile) [3]float64 {
	var s [3]float64
	n := 0.0
	for _, page := range classify.Pages(p, classify.DefaultOptions()) {
		if !page.Part {
			s[page.Class]++
			n++
		}
	}
	for i := range s {
		s[i] *= 100 / n
	}
	return s
}

// faultFigures is what a profile says of its faults: the remote share where every page
// weighs the same and its interval, in per cent, how many faults a page has, and for how
// much of the time a node may use it unseen.
type faultFigures struct{ remote, low, high, each, unseen float64 }

var (
	everyPage = regexp.MustCompile(`([0-9.]+)% where every page weighs the same \(95% confidence: ([0-9.]+) to ([0-9.]+),`)
	mayMiss   = regexp.MustCompile(`([0-9.]+) faults a page on average: .* in less than ([0-9.]+)% of the time`)
)

// readFaults is the figures of the warnings of a profile; not a number where they are none.
func readFaults(text string) faultFigures {
	var n [5]float64
	words := append(append([]string{}, everyPage.FindStringSubmatch(text)...), mayMiss.FindStringSubmatch(text)...)
	if len(words) != 7 {
		return faultFigures{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	for i, word := range slices.Delete(words, 4, 5)[1:] {
		n[i], _ = strconv.ParseFloat(word, 64)
	}
	return faultFigures{n[0], n[1], n[2], n[3], n[4] / 100}
}

// countedShares is the private, non-shared and shared pages and how remote they are, in
// per cent, of what was counted on these pages, each weighing the same. A node that
// makes less than least of the accesses to a page is none of its users.
func countedShares(private map[uint64]bool, r *lab.Result, least float64) [4]float64 {
	var s [4]float64
	n := 0.0
	for _, c := range r.Runs[0].Pages {
		own, known := private[c.Number]
		all, remote := touches(c)
		if !known || all == 0 {
			continue
		}
		n++
		if own {
			s[0]++
			continue
		}
		s[3] += remote / all
		s[min(2, users(c, least*all))]++
	}
	s[3] *= 100 / (s[1] + s[2])
	for i := range s[:3] {
		s[i] *= 100 / n
	}
	return s
}

// touches is the accesses to a page, and how many of them were remote.
func touches(c lab.Page) (all, remote float64) {
	for i, row := range c.Touched {
		for j, n := range row {
			all += float64(n)
			if i != j {
				remote += float64(n)
			}
		}
	}
	return all, remote
}

// users is how many nodes made accesses to a page, and at least so many; one did.
func users(c lab.Page, least float64) (n int) {
	for _, row := range c.Touched {
		sum := 0.0
		for _, n := range row {
			sum += float64(n)
		}
		if sum > 0 && sum >= least {
			n++
		}
	}
	return max(n, 1)
}
