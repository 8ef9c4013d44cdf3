package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

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

// faultError is how many points faults may be off. The aim is 5. How often the kernel
// looks at a page in such a run differs with what else the host does, from 5 times to 50,
// and the first look at a page that it then moves is a remote one: sharing has been 1 to 4
// points off, the remote share 1 to 8.
var faultError = map[string]float64{"private": 8, "non-shared": 8, "shared": 8, "remote": 15}

// TestFaultsAgainstCounter profiles programs by page faults in a guest of four nodes
// with NUMA balancing, and holds what the profile says of the pages against the lab's
// counter of every access of the same run: shares of pages that are private, used
// from one node, and shared, and the remote share of those that are not private, every
// page weighing the same.
func TestFaultsAgainstCounter(t *testing.T) {
	if testing.Short() {
		t.Skip("boots guests")
	}
	for _, c := range []struct {
		program, args string
		moves         bool // most pages have one user, to whom balancing moves them
	}{
		{"serial-init", "400 200", true},
		{"irregular", "400 512 40", false},
	} {
		t.Run(c.program, func(t *testing.T) {
			p, pages, r := faultsInGuest(t, programs.Build(t, c.program, "gcc"), c.args)
			counted, sampled := countedShares(pages, r), sampledShares(p)
			t.Logf("%d pages; counted %v; by faults %v", len(pages), counted, sampled)
			for i, name := range []string{"private", "non-shared", "shared", "remote"} {
				if !(math.Abs(counted[i]-sampled[i]) <= faultError[name]) {
					t.Errorf("%s: %.1f %% by page faults, %.1f %% counted", name, sampled[i], counted[i])
				}
			}
			text := strings.Join(p.Warnings, "\n")
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

// guestScript profiles $1 in the guest. NUMA balancing looks at memory as often as it
// would look in a run a hundred times as long: the guest is that slow. The kernel ends
// with the lab, and with it what is set here. The recording and
// the runtime's log are kept by a perf of our own.
const guestScript = `#!/bin/sh
unset LD_PRELOAD NUMAOPT_RUN
mount -t debugfs none /sys/kernel/debug
for f in scan_delay_ms scan_period_min_ms scan_period_max_ms; do echo 25 >/sys/kernel/debug/sched/numa_balancing/$f; done
export PATH=$PWD:$PATH TMPDIR=$PWD/tmp
mkdir tmp kept
taskset -c 0-7 "$NUMAOPT" profile --source faults -o app.nprof -- "$@"
`

// keepingPerf is perf, and keeps its recording and the runtime's log. It passes on that it
// is told to end.
const keepingPerf = `#!/bin/sh
PATH=${PATH#*:}
perf "$@" &
pid=$!
trap 'kill -TERM $pid' TERM INT
while wait $pid; status=$?; kill -0 $pid 2>/dev/null; do :; done
for a; do case $a in */perf.data) cp "$a" kept/ && cp tmp/numaopt-log-*/* kept/;; esac; done
exit $status
`

// faultsInGuest is the profile of a run in the guest, its pages by number and whether
// they are private, and what was counted of all pages of the guest.
func faultsInGuest(t *testing.T, app, args string) (*profile.Profile, map[uint64]bool, *lab.Result) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"script": guestScript, "perf": keepingPerf} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("NUMAOPT", filepath.Join(programs.Root(), "build", "numaopt"))
	machine, err := topo.Parse("4x2")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r, err := lab.Run(t.Context(), lab.Options{
		Command: append([]string{"./script", app}, strings.Fields(args)...), Topology: machine, Bind: lab.BindNone, Caches: topo.DefaultCaches(),
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
	p, err := profile.ReadFile("app.nprof")
	if err != nil {
		t.Fatal(err)
	}
	return p, pagesOf(t, "kept", machine), r
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
	table, _, err := sample.Read(f, sample.Options{Machine: machine, Log: filepath.Join(dir, "log")})
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

// sampledShares is the private, non-shared and shared pages of p and how remote they
// are, in per cent.
func sampledShares(p *profile.Profile) [4]float64 {
	var s [4]float64
	n := 0.0
	for _, page := range classify.Pages(p, classify.DefaultOptions()) {
		if !page.Part {
			s[page.Class]++
			n++
		}
	}
	for i := range s[:3] {
		s[i] *= 100 / n
	}
	s[3] = math.NaN()
	if m := everyPage.FindStringSubmatch(strings.Join(p.Warnings, "\n")); m != nil {
		s[3], _ = strconv.ParseFloat(m[1], 64)
	}
	return s
}

var everyPage = regexp.MustCompile(`([0-9.]+)% where every page weighs the same`)

// countedShares is the same of what was counted on these pages, each weighing the same.
func countedShares(private map[uint64]bool, r *lab.Result) [4]float64 {
	var s [4]float64
	n := 0.0
	for _, c := range r.Runs[0].Pages {
		own, known := private[c.Number]
		if !known {
			continue
		}
		nodes, remote, all := 0, 0.0, 0.0
		for i, row := range c.Touched {
			sum := uint64(0)
			for j, count := range row {
				sum += count
				if i != j {
					remote += float64(count)
				}
			}
			all += float64(sum)
			if sum > 0 {
				nodes++
			}
		}
		if all == 0 {
			continue
		}
		n++
		if own {
			nodes = 0
		} else {
			s[3] += remote / all
		}
		s[min(nodes, 2)]++
	}
	s[3] *= 100 / (s[1] + s[2])
	for i := range s[:3] {
		s[i] *= 100 / n
	}
	return s
}
