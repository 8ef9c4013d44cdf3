package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/topo"
	"numaopt/internal/units"
)

func TestNaturalLess(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"6.1.0-9-cloud", "6.1.0-56-cloud", true},
		{"6.1.0-56-cloud", "6.1.0-9-cloud", false},
		{"5.10.0", "6.1.0", true},
		{"6.1", "6.1.0", true},
		{"6.1.0", "6.1.0", false},
	} {
		if got := naturalLess(c.a, c.b); got != c.want {
			t.Errorf("%s before %s: %v", c.a, c.b, got)
		}
	}
}

func TestNoKernel(t *testing.T) {
	dir := t.TempDir()
	if _, err := kernelIn(dir, "*"); !errors.Is(err, ErrNoKernel) {
		t.Errorf("empty directory: %v", err)
	}
	os.MkdirAll(filepath.Join(dir, "boot"), 0o755)
	os.WriteFile(filepath.Join(dir, "boot", "vmlinuz-1.2-cloud"), nil, 0o644)
	base := filepath.Join(dir, "lib/modules/1.2-cloud")
	os.MkdirAll(filepath.Join(base, "kernel"), 0o755)
	builtin := "kernel/" + strings.Join(wantedModules, ".ko\nkernel/") + ".ko\n"
	os.WriteFile(filepath.Join(base, "modules.builtin"), []byte(builtin), 0o644)
	if k, err := kernelIn(dir, "*"); err != nil || k.Release != "1.2-cloud" || len(k.Modules) != 0 {
		t.Errorf("all built in: %+v, %v", k, err)
	}
	os.WriteFile(filepath.Join(base, "modules.builtin"), []byte(strings.ReplaceAll(builtin, "overlay.ko", "")), 0o644)
	if _, err := kernelIn(dir, "*"); err == nil || !strings.Contains(err.Error(), "overlay") {
		t.Errorf("no overlayfs: %v", err)
	}
}

func TestTopologies(t *testing.T) {
	for _, c := range []struct {
		name string
		err  string
	}{{"4x2", ""}, {"2x4", ""}, {"8x1", ""}, {"1x2", ""}, {"64x1", ""}, {"16x8", "at most 64"}} {
		m, err := topo.Parse(c.name)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = checkTopology(m)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	uneven := topo.Topology{Nodes: []topo.Node{{CPUs: []int{0, 1}}, {CPUs: []int{2}}}}
	if _, _, err := checkTopology(uneven); err == nil {
		t.Error("uneven nodes pass")
	}
}

func TestGuestArgs(t *testing.T) {
	g := &guest{dir: "/tmp/a,b", plugin: "/x/lab.so", nodes: 3, cpus: 2, memory: units.GiB, caches: topo.DefaultCaches(), thp: "never"}
	if g.nodeBytes() != 384*units.MiB {
		t.Errorf("a third of 1 GiB in sections: %v", g.nodeBytes())
	}
	all := strings.Join(g.args(), " ")
	for _, want := range []string{
		"-smp 6,sockets=3,cores=2,threads=1", "-m 1152M", "node,nodeid=2,memdev=m2,cpus=4-5", "unix:/tmp/a,,b/nfs",
		"node-bytes=402653184,l1=16384:8,l2=65536:8,llc=524288:16,only=0", "transparent_hugepage=never numa_balancing=disable",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
}
