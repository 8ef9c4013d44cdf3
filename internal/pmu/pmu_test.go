package pmu

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// machine is the machine of a tree in testdata.
func machine(t *testing.T, name string) *Machine {
	t.Helper()
	return Read(os.DirFS(tree(t, name)))
}

// tree unpacks one of testdata and returns where it is.
func tree(t *testing.T, name string) string {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, f := range a.Files {
		path := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestRecipes holds events and arguments for machines of all kinds. Each encoding
// is worked out by hand from the source that the machine's file in testdata names:
// Intel's are umask<<8 | event, with the threshold in config1.
func TestRecipes(t *testing.T) {
	for _, c := range []struct {
		machine string
		opt     Options
		want    Recipe
	}{
		{"skylake-sp", Options{}, Recipe{Kind: pebs, Period: pebsPeriod, UserOnly: true,
			Events: []Event{
				{Device: "cpu", Name: "mem-loads", Role: Loads, Config: 0x1cd, Config1: 3, From: "libpfm4 skx"},
				{Device: "cpu", Name: "mem-stores", Role: Stores, Config: 0x82d0, From: "libpfm4 skx"},
			},
			Select: words("-e cpu/config=0x1cd,config1=0x3,name=mem-loads/Pu -e cpu/config=0x82d0,name=mem-stores/Pu -c 20011")}},
		{"sapphire-rapids", Options{Latency: 30, Frequency: 4000}, Recipe{Kind: pebs, Frequency: 4000, UserOnly: true,
			Events: []Event{
				{Device: "cpu", Name: "mem-loads-aux", Role: Auxiliary, Config: 0x8203, From: "sysfs"},
				{Device: "cpu", Name: "mem-loads", Role: Loads, Config: 0x1cd, Config1: 30, From: "libpfm4 spr"},
				{Device: "cpu", Name: "mem-stores", Role: Stores, Config: 0x2cd, From: "sysfs"},
			},
			Select: words("-e {cpu/config=0x8203,name=mem-loads-aux/,cpu/config=0x1cd,config1=0x1e,name=mem-loads/}:Pu -e cpu/config=0x2cd,name=mem-stores/Pu -F 4000")}},
		{"hybrid", Options{Period: 1000, Kernel: true}, Recipe{Kind: pebs, Period: 1000,
			Events: []Event{
				{Device: "cpu_atom", Name: "cpu_atom-mem-loads", Role: Loads, Config: 0x5d0, Config1: 3, From: "sysfs"},
				{Device: "cpu_atom", Name: "cpu_atom-mem-stores", Role: Stores, Config: 0x6d0, From: "sysfs"},
				{Device: "cpu_core", Name: "cpu_core-mem-loads-aux", Role: Auxiliary, Config: 0x8203, From: "sysfs"},
				{Device: "cpu_core", Name: "cpu_core-mem-loads", Role: Loads, Config: 0x1cd, Config1: 3, From: "sysfs"},
				{Device: "cpu_core", Name: "cpu_core-mem-stores", Role: Stores, Config: 0x2cd, From: "sysfs"},
			},
			Select: words("-e cpu_atom/config=0x5d0,config1=0x3,name=cpu_atom-mem-loads/P -e cpu_atom/config=0x6d0,name=cpu_atom-mem-stores/P" +
				" -e {cpu_core/config=0x8203,name=cpu_core-mem-loads-aux/,cpu_core/config=0x1cd,config1=0x3,name=cpu_core-mem-loads/}:P" +
				" -e cpu_core/config=0x2cd,name=cpu_core-mem-stores/P -c 1000")}},
		{"nehalem", Options{}, Recipe{Kind: pebs, Period: pebsPeriod, UserOnly: true,
			Events: []Event{{Device: "cpu", Name: "mem-loads", Role: Loads, Config: 0x100b, Config1: 3, From: "libpfm4 nhm"}},
			Select: words("-e cpu/config=0x100b,config1=0x3,name=mem-loads/Pu -c 20011")}},
		{"zen2", Options{}, Recipe{Kind: ibs, Period: ibsPeriod, SystemWide: true, KernelToo: true,
			Events: []Event{{Device: "ibs_op", Name: "ibs_op", Role: Both, Config: 1 << 19, From: "sysfs"}},
			Select: words("-e ibs_op/config=0x80000,name=ibs_op/ -c 262144")}},
		{"zen4", Options{Period: 100000}, Recipe{Kind: ibs, Period: 100000, KernelToo: true,
			Events: []Event{{Device: "ibs_op", Name: "ibs_op", Role: Both, Config: 1 << 19, From: "sysfs"}},
			Select: words("-e ibs_op/config=0x80000,name=ibs_op/ -c 100000")}},
		{"zen5", Options{Latency: 256, Period: 1001}, Recipe{Kind: ibs, Period: 992, UserOnly: true,
			Events: []Event{{Device: "ibs_op", Name: "ibs_op", Role: Both, Config: 1<<19 | 1<<16, Config1: 256, Config2: 1, From: "sysfs"}},
			Select: words("-e ibs_op/config=0x90000,config1=0x100,config2=0x1,name=ibs_op/u -c 992")}},
		{"graviton3", Options{Latency: 20}, Recipe{Kind: spe, Period: spePeriod, UserOnly: true,
			Events: []Event{{Device: "arm_spe_0", Name: "arm_spe_0", Role: Both, Config: 1 | 1<<16 | 1<<33 | 1<<34, Config2: 20, From: "sysfs"}},
			Select: words("-e arm_spe_0/config=0x600010001,config2=0x14,name=arm_spe_0/u -c 4096")}},
	} {
		t.Run(c.machine, func(t *testing.T) {
			got, err := Choose(machine(t, c.machine), c.opt)
			if err != nil {
				t.Fatal(err)
			}
			got.Notes = nil
			if d := cmp.Diff(&c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func words(s string) []string { return strings.Fields(s) }

// TestNone says what is missing where no addresses can be sampled.
func TestNone(t *testing.T) {
	_, err := Choose(machine(t, "vm"), Options{})
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "virtual machines") || !strings.Contains(err.Error(), "8259CL") {
		t.Error(err)
	}
}

// TestRefused lists options that a processor cannot do.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		machine string
		opt     Options
		want    string
	}{
		{"skylake-sp", Options{Latency: 2}, "3 to 65535"},
		{"skylake-sp", Options{Period: 1, Frequency: 1}, "one of them"},
		{"zen4", Options{Latency: 128}, "no filter by latency"},
		{"zen5", Options{Latency: 100}, "steps of 128"},
		{"graviton3", Options{Latency: 5000}, "4095"},
		{"graviton3", Options{Frequency: 500}, "Arm SPE has a period only"},
	} {
		if _, err := Choose(machine(t, c.machine), c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want something with %q", c.machine, c.opt, err, c.want)
		}
	}
}

// TestNotes holds what users are told of limits.
func TestNotes(t *testing.T) {
	for _, c := range []struct {
		machine string
		opt     Options
		want    string
	}{
		{"skylake-sp", Options{}, "threshold 3 cycles"},
		{"skylake-sp", Options{Frequency: 200000}, "over the kernel's limit: 100000"},
		{"zen2", Options{}, "before Linux 6.2"},
		{"zen4", Options{}, "cannot leave the kernel out"},
		{"graviton3", Options{Period: 100}, "every 256 operations at most: not every 100"},
		{"zen5", Options{Period: 1001}, "steps of 16: a sample every 992"},
	} {
		r, err := Choose(machine(t, c.machine), c.opt)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(r.Notes, "\n"), c.want) {
			t.Errorf("%s %+v: notes %q, want %q", c.machine, c.opt, r.Notes, c.want)
		}
	}
}

// TestFormats holds formats of more than one range, as umasks of new processors have.
func TestFormats(t *testing.T) {
	var e Event
	if err := e.put("config:8-15,40-47", 0x1234); err != nil || e.Config != 0x12<<40|0x34<<8 {
		t.Errorf("%#x, %v", e.Config, err)
	}
	for _, bad := range []string{"", "config", "config9:0-7", "config:7-0", "config:0-64", "config:a"} {
		if err := e.put(bad, 1); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if err := e.put("config1:0-3", 16); err == nil {
		t.Error("16 went into four bits")
	}
}
