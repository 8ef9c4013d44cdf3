package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"numaopt/internal/topo"
)

// fake is a machine as a table: what a program says of its version, which parts
// are there.
type fake struct {
	versions map[string]string
	lacking  string // parts and programs that are not there
	kernel   error
	policy   error
	events   error // of perf_event_open
}

var whole = fake{versions: map[string]string{
	"qemu-x86_64":        "qemu-x86_64 version 7.2.22 (Debian 1:7.2+dfsg-7)",
	"qemu-system-x86_64": "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)",
}}

func (f fake) Path(name string) (string, error) {
	if strings.Contains(f.lacking, name) {
		return "", fs.ErrNotExist
	}
	return "/usr/bin/" + name, nil
}

func (f fake) Version(_ context.Context, path string) (string, error) {
	return f.versions[filepath.Base(path)], nil
}

func (f fake) Lib(name string) (string, error) {
	if strings.Contains(f.lacking, name) {
		return "", fs.ErrNotExist
	}
	return "/opt/lib/numaopt/" + name, nil
}

func (f fake) GuestKernel() (string, error) { return "6.1.0-50-cloud-amd64", f.kernel }
func (f fake) MemoryPolicy() error          { return f.policy }

// PerfEventOpen refuses what an ordinary user may not count or sample by default.
func (f fake) PerfEventOpen(attr *unix.PerfEventAttr, pid, _, _, _ int) (int, error) {
	if pid != -1 && attr.Bits&unix.PerfBitExcludeKernel == 0 {
		return -1, unix.EACCES
	}
	if f.events != nil {
		return -1, f.events
	}
	return unix.Dup(0)
}

// machine is a recorded topology with settings of the kernel beside it.
func machine(t *testing.T, tree string, settings map[string]string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	dir := filepath.Join("../../testdata/topo", tree)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = &fstest.MapFile{Data: b}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"proc/sys/kernel/ostype": "Linux", "proc/sys/kernel/osrelease": "6.1.0-50-amd64",
		"proc/sys/kernel/perf_event_paranoid": "2", "proc/sys/kernel/numa_balancing": "0",
		"proc/sys/vm/max_map_count": "65530", "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
	}
	maps.Copy(all, settings)
	for name, text := range all {
		if text != "" {
			files[name] = &fstest.MapFile{Data: []byte(text + "\n")}
		}
	}
	return files
}

// pebs is how the kernel tells of Intel's load latency.
var pebs = map[string]string{
	"sys/bus/event_source/devices/cpu/events/mem-loads": "event=0xcd,umask=0x1,ldlat=3",
	"sys/bus/event_source/devices/cpu/format/event":     "config:0-7",
	"sys/bus/event_source/devices/cpu/format/umask":     "config:8-15",
	"sys/bus/event_source/devices/cpu/format/ldlat":     "config1:0-15",
}

var zen4 = map[string]string{
	"proc/cpuinfo":                          "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9654",
	"sys/bus/event_source/devices/cpu/type": "4",
}

func TestExamine(t *testing.T) {
	qemu := func(v string) fake {
		f := whole
		f.versions = map[string]string{"qemu-x86_64": v, "qemu-system-x86_64": v}
		return f
	}
	for _, c := range []struct {
		name     string
		tree     string
		settings map[string]string
		fake     fake
		want     string // finding: state: part of text or fix
		works    string // abilities that do
	}{
		{"four nodes", "4n2c", nil, whole, "topology: ok: 4 nodes, 8 CPUs (4x2), 4 GiB", "profile apply lab"},
		{"one node", "1n2c", nil, whole, "topology: note: nothing is remote", "profile apply lab"},
		{"no memory", "3n4c-memoryless", nil, whole, "topology: ok: 1 node cannot hold pages", "profile apply lab"},
		{"cpuset", "4n2c-cpuset", nil, whole, "cpuset: note: 4 of 8 CPUs, memory of 2 of 4 nodes", "profile apply lab"},
		{"all of it", "4n2c", nil, whole, "cpuset: ok: all CPUs", "profile apply lab"},
		{"paranoid", "4n2c", map[string]string{"proc/sys/kernel/perf_event_paranoid": "3"}, whole, "perf_event_paranoid: note: sysctl kernel.perf_event_paranoid=2", "profile apply lab"},
		{"no perf", "4n2c", map[string]string{"proc/sys/kernel/perf_event_paranoid": ""}, whole, "perf_event_paranoid: note: no perf events", "profile apply lab"},
		{"PEBS", "4n2c", pebs, whole, "memory events: ok: perf record -e cpu/config=0x1cd,config1=0x3,name=mem-loads/Pu", "profile apply lab"},
		{"PEBS refused", "4n2c", pebs, fake{versions: whole.versions, events: unix.EBUSY}, "memory events: limited: perf_event_open of mem-loads: EBUSY (16): another user has the counter sysctl kernel.nmi_watchdog=0", "profile apply lab"},
		{"counters", "4n2c", zen4, whole, "counters: ok: ANY_DATA_CACHE_FILLS_FROM_SYSTEM:DRAM_IO_NEAR, ", "profile apply lab stat"},
		{"counters refused", "4n2c", zen4, fake{versions: whole.versions, events: unix.EACCES}, "counters: limited: EACCES (13): a security policy", "profile apply lab"},
		{"IBS", "4n2c", map[string]string{"sys/bus/event_source/devices/ibs_op/type": "9"}, whole, "memory events: ok: AMD IBS: profile --source pmu", "profile apply lab"},
		{"virtual machine", "4n2c", map[string]string{"sys/bus/event_source/devices/software/type": "1"}, whole, "memory events: note: sees no performance counters", "profile apply lab"},
		{"balancing", "4n2c", map[string]string{"proc/sys/kernel/numa_balancing": "1"}, whole, "numa_balancing: note: sysctl kernel.numa_balancing=0", "profile apply lab"},
		{"huge pages", "4n2c", map[string]string{"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"}, whole, "transparent huge pages: note: 2 MiB to one node", "profile apply lab"},
		{"few mappings", "4n2c", map[string]string{"proc/sys/vm/max_map_count": "1000"}, whole, "vm.max_map_count: limited: 250 ranges", "profile apply lab"},
		{"no qemu-user", "4n2c", nil, fake{versions: whole.versions, lacking: "qemu-x86_64"}, "qemu-user: missing: apt-get install qemu-user", "apply lab"},
		{"no qemu-system", "4n2c", nil, fake{versions: whole.versions, lacking: "qemu-system-x86_64"}, "qemu-system: missing: apt-get install qemu-system-x86", "profile apply"},
		{"no mke2fs", "4n2c", nil, fake{versions: whole.versions, lacking: "mke2fs"}, "e2fsprogs: missing: apt-get install e2fsprogs", "profile apply"},
		{"new QEMU", "4n2c", nil, qemu("qemu-x86_64 version 9.0.2"), "qemu-user: missing: the plugins fit 6.0 up to", "apply"},
		{"old QEMU", "4n2c", nil, qemu("qemu-x86_64 version 5.2.0"), "qemu-user: missing: the plugins fit 6.0 up to", "apply"},
		{"other QEMU", "4n2c", nil, qemu("qemu-x86_64 version 8.1.1"), "qemu-user: note: tested is 7.2", "profile apply lab"},
		{"odd QEMU", "4n2c", nil, qemu("hello"), `qemu-user: missing: "hello" does not tell`, "apply"},
		{"parts", "4n2c", nil, fake{versions: whole.versions, lacking: "emulate.so lab.so"}, "parts: missing: emulate.so, lab.so", ""},
		{"no guest kernel", "4n2c", nil, fake{versions: whole.versions, kernel: fs.ErrNotExist}, "guest kernel: missing: scripts/setup", "profile apply"},
		{"container", "4n2c", map[string]string{"proc/self/status": "Name:\tx\nSeccomp:\t2\n"}, fake{versions: whole.versions, policy: fmt.Errorf("mbind: %w", syscall.EPERM)},
			"memory policy: missing: docker run --cap-add SYS_NICE", "profile lab"},
		{"forbidden", "4n2c", nil, fake{versions: whole.versions, policy: syscall.EPERM}, "memory policy: missing: not allowed here", "profile lab"},
		{"no NUMA", "1n8c-no-numa", nil, fake{versions: whole.versions, policy: syscall.ENOSYS}, "memory policy: missing: CONFIG_NUMA", "profile lab"},
	} {
		r := Examine(context.Background(), machine(t, c.tree, c.settings), c.fake)
		part := strings.SplitN(c.want, ": ", 3)
		found := false
		for _, f := range r.Findings {
			if f.Name == part[0] {
				found = true
				if string(f.State) != part[1] || !strings.Contains(f.Text+" "+f.Fix, part[2]) {
					t.Errorf("%s: %+v; want %s", c.name, f, c.want)
				}
			}
			if f.State == Missing && f.Fix == "" {
				t.Errorf("%s: %s is missing without a fix", c.name, f.Name)
			}
		}
		if !found {
			t.Errorf("%s: no finding %q", c.name, part[0])
		}
		var works []string
		for _, a := range r.Abilities {
			if a.Works {
				works = append(works, a.Name)
			}
		}
		if got := strings.Join(works, " "); got != c.works {
			t.Errorf("%s: works: %q; want %q", c.name, got, c.works)
		}
		if r.Works() != (c.works != "") {
			t.Errorf("%s: Works() = %v", c.name, r.Works())
		}
	}
}

func TestNothingMounted(t *testing.T) {
	r := Examine(context.Background(), fstest.MapFS{}, whole)
	if r.Topology != nil || r.state("topology") != Missing {
		t.Errorf("an empty file system has topology %v", r.Topology)
	}
}

// TestSave examines a saved machine as if it were the machine.
func TestSave(t *testing.T) {
	root := machine(t, "4n2c", map[string]string{"sys/bus/event_source/devices/ibs_op/type": "9"})
	dir := t.TempDir()
	if n, err := Save(root, dir); err != nil || n < 10 {
		t.Fatalf("%d files, %v", n, err)
	}
	var want, got strings.Builder
	Examine(context.Background(), root, whole).Print(&want)
	Examine(context.Background(), os.DirFS(dir), whole).Print(&got)
	if want.String() != got.String() {
		t.Errorf("saved:\n%s\nas it was:\n%s", got.String(), want.String())
	}
}

// TestHost looks at the machine the test runs on: whatever it is, the answer is
// whole.
func TestHost(t *testing.T) {
	m := Machine{FindLib: func(string) (string, error) { return "", fs.ErrNotExist }}
	r := Examine(context.Background(), os.DirFS("/"), m)
	if r.Topology == nil || r.Topology.NumCPUs() == 0 {
		t.Errorf("topology %v", r.Topology)
	}
	if host, err := topo.Host(); err != nil || host.String() != r.Topology.String() {
		t.Errorf("topo.Host() = %v, %v; doctor says %v", host, err, r.Topology)
	}
	if r.state("parts") != Missing {
		t.Error("parts that are nowhere were found")
	}
}
