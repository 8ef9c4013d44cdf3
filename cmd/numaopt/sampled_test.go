package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"golang.org/x/tools/txtar"

	"numaopt/internal/profile"
	"numaopt/internal/programs"
	"numaopt/internal/runfile"
)

// fixture is a machine of internal/pmu/testdata with two nodes of four CPUs, whose
// kernel opens every event, unless it answers err.
func fixture(t *testing.T, name string, err error) host {
	t.Helper()
	a, errFile := txtar.ParseFile(filepath.Join("..", "..", "internal", "pmu", "testdata", name+".txtar"))
	if errFile != nil {
		t.Fatal(errFile)
	}
	t.Setenv(runfile.LibDir, filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	root := t.TempDir()
	files := append(a.Files,
		txtar.File{Name: "sys/devices/system/cpu/online", Data: []byte("0-7\n")},
		txtar.File{Name: "sys/devices/system/node/online", Data: []byte("0-1\n")},
		txtar.File{Name: "sys/devices/system/node/node0/cpulist", Data: []byte("0-3\n")},
		txtar.File{Name: "sys/devices/system/node/node1/cpulist", Data: []byte("4-7\n")},
		txtar.File{Name: "sys/devices/system/node/node0/distance", Data: []byte("10 21\n")},
		txtar.File{Name: "sys/devices/system/node/node1/distance", Data: []byte("21 10\n")})
	for _, f := range files {
		path := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return host{os.DirFS(root), func(*unix.PerfEventAttr, int, int, int, int) (int, error) {
		if err != nil {
			return -1, err
		}
		return unix.Dup(0)
	}}
}

// sampled runs numaopt profile on a machine and returns the profile, if there is
// one, what was said and the error.
func sampled(t *testing.T, h host, opt profileOptions) (*profile.Profile, string, error) {
	t.Helper()
	if opt.host = h; opt.source == "" {
		opt.source = sourcePMU
	}
	if opt.period == 0 {
		opt.period = 1
	}
	opt.l1, opt.l2, opt.llc = "16K:8", "64K:8", "1M:16"
	opt.out = filepath.Join(t.TempDir(), "x.nprof")
	var said bytes.Buffer
	err := runProfile(context.Background(), errOnly(&said), opt)
	p, errRead := profile.ReadFile(opt.out)
	if errRead != nil {
		p = nil
	}
	return p, said.String(), err
}

var program7 = []string{"sh", "-c", "exit 7"}

// attachedTo is how perf is told which process to follow.
var attachedTo = regexp.MustCompile(`-t [1-9][0-9]*$`)

// TestCommandLines holds the whole command line of perf for machines of all kinds.
func TestCommandLines(t *testing.T) {
	const always = "record -o FILE -d --sample-cpu -k CLOCK_MONOTONIC -W "
	for _, c := range []struct {
		machine string
		opt     profileOptions
		want    string
	}{
		// MEM_TRANS_RETIRED.LOAD_LATENCY is event CDH, umask 01H, its threshold MSR_PEBS_LD_LAT
		// (config1); MEM_INST_RETIRED.ALL_STORES D0H, 82H: Intel SDM vol. 3B, events of Skylake-SP.
		{"skylake-sp", profileOptions{}, "-e cpu/config=0x1cd,config1=0x3,name=mem-loads/Pu -e cpu/config=0x82d0,name=mem-stores/Pu -c 20011 --phys-data"},
		// The auxiliary event 03H, 82H and MEM_TRANS_RETIRED.STORE_SAMPLE CDH, 02H: Linux,
		// arch/x86/events/intel/core.c, mem_ld_aux and mem_st_spr.
		{"sapphire-rapids", profileOptions{ldlat: 30, frequency: 4000}, "-e {cpu/config=0x8203,name=mem-loads-aux/,cpu/config=0x1cd,config1=0x1e,name=mem-loads/}:Pu -e cpu/config=0x2cd,name=mem-stores/Pu -F 4000 --phys-data"},
		// Gracemont's MEM_UOPS_RETIRED D0H, loads 05H, stores 06H: the same file, mem_ld_adl and mem_st_adl.
		{"hybrid", profileOptions{period: 1000}, "-e cpu_atom/config=0x5d0,config1=0x3,name=cpu_atom-mem-loads/Pu -e cpu_atom/config=0x6d0,name=cpu_atom-mem-stores/Pu" +
			" -e {cpu_core/config=0x8203,name=cpu_core-mem-loads-aux/,cpu_core/config=0x1cd,config1=0x3,name=cpu_core-mem-loads/}:Pu" +
			" -e cpu_core/config=0x2cd,name=cpu_core-mem-stores/Pu -c 1000 --phys-data"},
		// IbsOpCntCtl is bit 19 of IbsOpCtl: AMD PPR, MSRC001_1033; Linux, arch/x86/events/amd/ibs.c.
		{"zen2", profileOptions{}, "-e ibs_op/config=0x80000,name=ibs_op/ -c 262144 --phys-data -a"},
		{"zen4", profileOptions{}, "-e ibs_op/config=0x80000,name=ibs_op/ -c 262144 --phys-data"},
		// IbsOpL3MissOnly is bit 16, and needed by the latency filter (config1, 0-11); swfilt
		// is config2, bit 0: the same file.
		{"zen5", profileOptions{ldlat: 256}, "-e ibs_op/config=0x90000,config1=0x100,config2=0x1,name=ibs_op/u -c 262144 --phys-data"},
		// ts_enable bit 0, jitter 16, load_filter 33, store_filter 34, min_latency config2:
		// Linux, drivers/perf/arm_spe_pmu.c.
		{"graviton3", profileOptions{ldlat: 20}, "-e arm_spe_0/config=0x600010001,config2=0x14,name=arm_spe_0/u -c 4096 --phys-data"},
	} {
		t.Run(c.machine, func(t *testing.T) {
			calls := standIn(t, "")
			c.opt.program = program7
			p, said, err := sampled(t, fixture(t, c.machine, nil), c.opt)
			if exitCode(err) != 7 || p == nil {
				t.Fatalf("%v, profile %v\n%s", err, p, said)
			}
			got := calls()
			last := got[len(got)-1]
			last[slices.Index(last, "-o")+1] = "FILE"
			want := always + c.want + " --control fd:3,3"
			if c.machine != "zen2" { // it records the whole machine
				want += " --inherit -t PID"
			}
			if d := cmp.Diff(want, attachedTo.ReplaceAllString(strings.Join(last, " "), "-t PID")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			// Also where everything is recorded, the profile is of the program.
			if r := p.Run.Recording; r.Used != 40 || r.SystemWide != (c.machine == "zen2") || p.Run.ExitStatus != 7 {
				t.Errorf("%+v, status %d", r, p.Run.ExitStatus)
			}
		})
	}
}

// TestRefusals: what the kernel or perf refuses exits 3 with call, errno and the
// one fix, before the program has run.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, machine, standin string
		opened                 error
		want                   string
	}{
		{"vm", "vm", "", nil, "no performance counters, as in most virtual machines"},
		{"paranoid", "zen4", "", unix.EACCES, "perf_event_open of ibs_op: EACCES (13): kernel.perf_event_paranoid is 2: sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON"},
		{"busy", "skylake-sp", "", unix.EBUSY, "perf_event_open of mem-loads: EBUSY (16): another user has the counter"},
		{"old", "skylake-sp", "old", nil, "perf 6.8.12 is too old: perf record has no -k; install the perf of a newer kernel"},
		{"refuses", "skylake-sp", "refuses", nil, "perf 6.8.12 cannot record here (exit status 255). perf says:\nError:\nThe sys_perf_event_open() syscall returned with 22"},
		{"files", "skylake-sp", "files", nil, "perf_event_open: EMFILE (24): perf needs 88 descriptors, and RLIMIT_NOFILE is"},
		{"mlock", "skylake-sp", "mlock-never", nil, "mmap of an event's buffer: EPERM (1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			standIn(t, c.standin)
			ran := filepath.Join(t.TempDir(), "ran")
			p, said, err := sampled(t, fixture(t, c.machine, c.opened), profileOptions{program: []string{"touch", ran}})
			if exitCode(err) != exitCannot || p != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v (exit status %d), want %q\n%s", err, exitCode(err), c.want, said)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the program has run")
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, _, err := sampled(t, fixture(t, "skylake-sp", nil), profileOptions{program: []string{"/bin/sh"}})
		if exitCode(err) != exitCannot || !strings.Contains(err.Error(), "perf is not installed: apt-get install linux-perf") {
			t.Error(err)
		}
	})
}

// TestAuto falls through pmu, page faults and emulation, and says why.
func TestAuto(t *testing.T) {
	standIn(t, "")
	var said bytes.Buffer
	opt := profileOptions{source: sourceAuto, period: 1, host: fixture(t, "skylake-sp", unix.EACCES)}
	from, err := choose(errOnly(&said), opt)
	if err != nil || from.name != sourceEmulate {
		t.Errorf("%+v, %v", from, err)
	}
	for _, want := range []string{"source: emulation, not pmu: perf_event_open of mem-loads: EACCES (13)", "nor page faults: perf_event_open of page-faults: EACCES (13)"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q, want %q", said.String(), want)
		}
	}
	said.Reset()
	opt.host = fixture(t, "vm", nil)
	from, err = choose(errOnly(&said), opt)
	if err != nil || from.name != sourceFaults || !strings.Contains(said.String(), "source: page faults, not pmu: ") {
		t.Errorf("%+v, %v: %s", from, err, said.String())
	}
	said.Reset()
	opt.host = fixture(t, "skylake-sp", nil)
	if from, err = choose(errOnly(&said), opt); err != nil || from.name != sourcePMU || said.Len() != 0 {
		t.Errorf("%+v, %v: %s", from, err, said.String())
	}
	opt.host.root = fstest.MapFS{
		"sys/devices/system/cpu/online":          {Data: []byte("0-3\n")},
		"sys/devices/system/node/online":         {Data: []byte("0\n")},
		"sys/devices/system/node/node0/cpulist":  {Data: []byte("0-3\n")},
		"sys/devices/system/node/node0/distance": {Data: []byte("10\n")},
	}
	if from, err = choose(errOnly(&said), opt); err != nil || from.name != sourceEmulate || !strings.Contains(said.String(), "source: emulation, this machine is one node, where nothing is remote; --source pmu or faults") {
		t.Errorf("%+v, %v: %s", from, err, said.String())
	}
}

// TestOptions: what the user got wrong ends with 2 and hides behind no other source; what
// the source that auto took does not heed is said.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		machine string
		opt     profileOptions
		want    string
	}{
		{"skylake-sp", profileOptions{ldlat: 1}, "3 to 65535"},
		{"vm", profileOptions{ldlat: -5}, "a number of cycles"},
		{"vm", profileOptions{frequency: 10, period: 5}, "--period and -F: one of them"},
		{"graviton3", profileOptions{frequency: 500}, "a period only"},
		{"vm", profileOptions{source: sourceFaults, frequency: 500, ldlat: 30}, "--source faults does not heed --ldlat, -F"},
		{"vm", profileOptions{source: sourceFaults, period: 5}, "--source faults does not heed --period"},
		{"vm", profileOptions{source: sourceEmulate, frequency: 5}, "--source emulate does not heed -F"},
	} {
		standIn(t, "")
		if c.opt.program = program7; c.opt.source == "" {
			c.opt.source = sourceAuto
		}
		if _, said, err := sampled(t, fixture(t, c.machine, nil), c.opt); exitCode(err) != exitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %+v: %v, want %q\n%s", c.machine, c.opt, err, c.want, said)
		}
	}
	standIn(t, "")
	p, said, err := sampled(t, fixture(t, "vm", nil), profileOptions{source: sourceAuto, frequency: 500, ldlat: 30, program: program7})
	if exitCode(err) != 7 || !strings.Contains(said, "not heeded by this source: --ldlat, -F\n") || p == nil || p.Run.Recording.WishedFrequency != 0 {
		t.Errorf("%v, %+v\n%s", err, p, said)
	}
}

// TestClamps: limits that a recording is fitted to are said and kept.
func TestClamps(t *testing.T) {
	for _, c := range []struct {
		standin string
		opt     profileOptions
		want    string
		args    string
	}{
		{"", profileOptions{frequency: 200000}, "200000 samples a second are over the kernel's limit: 100000", "-F 100000"},
		{"mlock", profileOptions{}, "only 16 pages for each CPU", "-m 16 --control"},
		{"no-phys", profileOptions{}, "", "-c 20011 --control"},
	} {
		calls := standIn(t, c.standin)
		c.opt.program = []string{"sh", "-c", "exit 0"}
		p, said, err := sampled(t, fixture(t, "skylake-sp", nil), c.opt)
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		got := calls()
		if line := strings.Join(got[len(got)-1], " "); !strings.Contains(line, c.args) {
			t.Errorf("%s: no %q in %q", c.standin, c.args, line)
		}
		if !strings.Contains(said, c.want) || !strings.Contains(strings.Join(p.Run.Recording.Notes, "\n"), c.want) {
			t.Errorf("%q not in %q or %q", c.want, said, p.Run.Recording.Notes)
		}
		if c.opt.frequency != 0 && p.Run.Recording.WishedFrequency != c.opt.frequency {
			t.Errorf("wished %d", p.Run.Recording.WishedFrequency)
		}
	}
}

// TestProgramEnds: the program's end is the command's, whatever perf does.
func TestProgramEnds(t *testing.T) {
	for _, c := range []struct {
		name, standin, script string
		status                int
		profile               bool
		said                  string
	}{
		{"status", "", "exit 42", 42, true, ""},
		{"signal", "", "kill -SEGV $$", 139, true, ""},
		{"terminated", "", "kill $$", 143, true, ""},
		{"cut", "cut", "exit 5", 5, true, "cut short"},
		{"perf dies", "dies", "exit 0", 1, false, "the profile is lost"},
		{"perf dies first", "dies", "sleep 0.3; exit 4", 4, false, "perf ended before the program, which was not recorded any more then: perf 6.8.12: signal: killed"},
		{"no room", "full", "sleep 0.3; exit 4", 4, false, "failed to write perf data, error: No space left on device"},
		{"outlives", "", "sleep 30 >/dev/null 2>&1 & exit 3", 3, true, ""},
		{"forks away", "", "(setsid sleep 30 >/dev/null 2>&1 &) ; exit 0", 0, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			standIn(t, c.standin)
			start := time.Now()
			p, said, err := sampled(t, fixture(t, "skylake-sp", nil), profileOptions{program: []string{"sh", "-c", c.script}})
			if exitCode(err) != c.status || (p != nil) != c.profile || !strings.Contains(said, c.said) {
				t.Errorf("status %d, profile %v: %v\n%s", exitCode(err), p != nil, err, said)
			}
			if time.Since(start) > 20*time.Second {
				t.Error("waited for what the program left behind")
			}
		})
	}
}

// TestAttach profiles what runs already: until its end, for a time, or until a signal.
func TestAttach(t *testing.T) {
	running := func(t *testing.T, seconds string) *exec.Cmd {
		cmd := exec.Command("sleep", seconds)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()               // a zombie would be a process still
		t.Cleanup(func() { cmd.Process.Kill(); <-ended }) //nolint:errcheck // it may have ended
		return cmd
	}
	t.Run("duration", func(t *testing.T) {
		calls := standIn(t, "")
		app := running(t, "60")
		p, said, err := sampled(t, fixture(t, "skylake-sp", nil), profileOptions{pid: app.Process.Pid, duration: 200 * time.Millisecond})
		if err != nil || p == nil {
			t.Fatalf("%v\n%s", err, said)
		}
		got := calls()
		if line := strings.Join(got[len(got)-1], " "); !strings.HasSuffix(line, " -p "+strconv.Itoa(app.Process.Pid)) {
			t.Error(line)
		}
		if d := cmp.Diff([]string{"sleep", "60"}, p.Run.Command); d != "" || p.Run.Recording.PID != app.Process.Pid || p.Run.ExitStatus != 0 {
			t.Errorf("%s, %+v", d, p.Run.Recording)
		}
		if !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, "heap objects are known as mappings only") }) {
			t.Errorf("no word of what is missing: %q", p.Warnings)
		}
	})
	t.Run("its end", func(t *testing.T) {
		standIn(t, "")
		app := running(t, "5")
		if p, said, err := sampled(t, fixture(t, "skylake-sp", nil), profileOptions{pid: app.Process.Pid}); err != nil || p == nil {
			t.Errorf("%v\n%s", err, said)
		}
	})
	t.Run("whole machine for one process", func(t *testing.T) {
		calls := standIn(t, "")
		app := running(t, "60")
		t.Setenv(standinPID, strconv.Itoa(app.Process.Pid))
		p, said, err := sampled(t, fixture(t, "zen2", nil), profileOptions{pid: app.Process.Pid, duration: 200 * time.Millisecond})
		if err != nil || p == nil {
			t.Fatalf("%v\n%s", err, said)
		}
		got := calls()
		if last := got[len(got)-1]; !slices.Contains(last, "-a") || slices.Contains(last, "-p") {
			t.Error(last)
		}
	})
	t.Run("whole machine until one process ends", func(t *testing.T) {
		standIn(t, "")
		app := running(t, "5")
		t.Setenv(standinPID, strconv.Itoa(app.Process.Pid))
		if p, said, err := sampled(t, fixture(t, "zen2", nil), profileOptions{pid: app.Process.Pid, duration: time.Minute}); err != nil || p == nil || p.Run.Elapsed > 30*time.Second {
			t.Errorf("%v\n%s", err, said)
		}
	})
	t.Run("signal", func(t *testing.T) {
		calls := standIn(t, "")
		app := running(t, "60")
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			for !slices.ContainsFunc(calls(), func(args []string) bool { return slices.Contains(args, "-p") }) {
				time.Sleep(10 * time.Millisecond)
			}
			cancel(&signalError{syscall.SIGINT})
		}()
		out := filepath.Join(t.TempDir(), "x.nprof")
		opt := profileOptions{source: sourcePMU, pid: app.Process.Pid, period: 1, out: out, l1: "16K:8", l2: "64K:8", llc: "1M:16", host: fixture(t, "skylake-sp", nil)}
		var said bytes.Buffer
		if err := runProfile(ctx, errOnly(&said), opt); err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		if _, err := profile.ReadFile(out); err != nil {
			t.Error(err)
		}
	})
	t.Run("machine", func(t *testing.T) {
		calls := standIn(t, "")
		p, said, err := sampled(t, fixture(t, "skylake-sp", nil), profileOptions{all: true, duration: 200 * time.Millisecond})
		if err != nil || p == nil {
			t.Fatalf("%v\n%s", err, said)
		}
		got := calls()
		if last := got[len(got)-1]; !slices.Contains(last, "-a") || slices.Contains(last, "--") || !p.Run.Recording.SystemWide {
			t.Error(last)
		}
	})
	t.Run("ended too early", func(t *testing.T) {
		standIn(t, "gone")
		app := running(t, "60")
		h := fixture(t, "skylake-sp", nil)
		h.open = func(*unix.PerfEventAttr, int, int, int, int) (int, error) {
			app.Process.Kill() //nolint:errcheck // it may be gone
			for syscall.Kill(app.Process.Pid, 0) == nil {
				time.Sleep(time.Millisecond)
			}
			return unix.Dup(0)
		}
		_, _, err := sampled(t, h, profileOptions{pid: app.Process.Pid})
		if want := "process " + strconv.Itoa(app.Process.Pid) + " ended before perf had begun"; exitCode(err) != exitCannot || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
	t.Run("idle", func(t *testing.T) {
		standIn(t, "idle")
		app := running(t, "60")
		_, said, err := sampled(t, fixture(t, "skylake-sp", nil), profileOptions{pid: app.Process.Pid, duration: 200 * time.Millisecond})
		if exitCode(err) != exitCannot || !strings.Contains(err.Error(), "no profile: there was no sample in that time") || strings.Contains(said, "lost") {
			t.Errorf("%v\n%s", err, said)
		}
	})
	t.Run("no such process", func(t *testing.T) {
		standIn(t, "")
		_, _, err := sampled(t, fixture(t, "skylake-sp", unix.ESRCH), profileOptions{pid: 4_000_000})
		if exitCode(err) != exitUsage || err.Error() != "-p 4000000: there is no such process" {
			t.Error(err)
		}
	})
}

// TestAttachUsage lists what does not go together.
func TestAttachUsage(t *testing.T) {
	for _, c := range []struct {
		opt  profileOptions
		want string
	}{
		{profileOptions{pid: 1, all: true}, "one process, or the whole machine"},
		{profileOptions{pid: -1}, "not the ID"},
		{profileOptions{pid: 1, source: sourceEmulate}, "can be emulated"},
		{profileOptions{pid: 1, source: sourceAuto, plan: "x"}, "can be emulated"},
		{profileOptions{duration: time.Second, program: program7}, "--duration goes with"},
		{profileOptions{pid: 1, duration: -time.Second}, "time to come"},
	} {
		if c.opt.source == "" {
			c.opt.source = sourcePMU
		}
		if _, _, err := sampled(t, host{}, c.opt); exitCode(err) != exitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.opt, err, c.want)
		}
	}
}
