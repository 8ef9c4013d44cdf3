package pmu

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestCounters holds the counters of machines of all kinds; where each encoding is
// from stands above it.
func TestCounters(t *testing.T) {
	for machineName, want := range map[string]string{
		// MEM_LOAD_L3_MISS_RETIRED is D3H; LOCAL_DRAM 01H, REMOTE_DRAM 02H, REMOTE_HITM 04H,
		// REMOTE_FWD 08H: Intel SDM vol. 3B, events of Skylake-SP. CAS_COUNT is 04H, reads
		// 03H, writes 0CH, and TxL_FLITS.ALL_DATA 02H, 0FH: Xeon Scalable uncore guide.
		"skylake-sp": "local DRAM cpu 0x1d3; remote DRAM cpu 0x2d3; remote caches cpu 0x4d3; remote caches cpu 0x8d3;" +
			" memory read uncore_imc_0 0x304 on [0 4]; memory written uncore_imc_0 0xc04 on [0 4]; interconnect uncore_upi_0 0xf02 on [0 4]",
		// The same of Golden Cove: Linux, tools/perf/pmu-events/arch/x86/sapphirerapids/cache.json.
		"sapphire-rapids": "local DRAM cpu 0x1d3; remote DRAM cpu 0x2d3; remote caches cpu 0x4d3; remote caches cpu 0x8d3",
		// MEM_UNCORE_RETIRED is 0FH; REMOTE_DRAM 10H, LOCAL_DRAM 20H: SDM, events of Nehalem.
		"nehalem": "local DRAM cpu 0x200f; remote DRAM cpu 0x100f",
		// LsRefillsFromSys is 43H; LCL_DRAM bit 3, RMT_CACHE 4, RMT_DRAM 6: PPR of family 17h
		// model 31h, PMCx043.
		"zen2": "local DRAM cpu 0x843; remote DRAM cpu 0x4043; remote caches cpu 0x1043",
		// LsAnyFillsFromSys is 44H; DRAM_IO_Near bit 3, Far_Cache 4, DRAM_IO_Far 6: PPR of
		// family 19h model 11h, PMCx044; for Zen 5 Linux, amdzen5/load-store.json.
		"zen4": "local DRAM cpu 0x844; remote DRAM cpu 0x4044; remote caches cpu 0x1044",
		"zen5": "local DRAM cpu 0x844; remote DRAM cpu 0x4044; remote caches cpu 0x1044",
		// LL_CACHE_MISS_RD is 37H, REMOTE_ACCESS 31H: Arm ARM, D13.11, common events.
		"graviton3": "LLC misses armv8_pmuv3_0 0x37; remote accesses armv8_pmuv3_0 0x31",
	} {
		c, err := ChooseCounters(machine(t, machineName))
		if err != nil {
			t.Errorf("%s: %v", machineName, err)
			continue
		}
		var got []string
		for _, e := range c.Events {
			got = append(got, fmt.Sprintf("%s %s %#x", e.Role, e.Device, e.Config))
		}
		for _, e := range c.Uncore {
			got = append(got, fmt.Sprintf("%s %s %#x on %v", e.Role, e.Device, e.Config, c.UncoreCPUs[e.Device]))
		}
		if d := cmp.Diff(want, strings.Join(got, "; ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", machineName, d)
		}
	}
}

// TestIntelModels holds the encodings of processors of which there is no tree: umasks of
// event D3H as Linux has them (tools/perf/pmu-events/arch/x86/*/cache.json).
func TestIntelModels(t *testing.T) {
	for model, want := range map[string]string{
		"45": "0x1d3 0x4d3",               // jaketown
		"62": "0x3d3 0xcd3 0x10d3 0x20d3", // ivytown
		"63": "0x1d3 0x4d3 0x10d3 0x20d3", // haswellx
	} {
		c, err := ChooseCounters(Read(fstest.MapFS{
			"proc/cpuinfo":        {Data: []byte("vendor_id: GenuineIntel\ncpu family: 6\nmodel: " + model + "\nstepping: 4\n")},
			devices + "/cpu/type": {Data: []byte("4")},
		}))
		if err != nil {
			t.Errorf("model %s: %v", model, err)
			continue
		}
		var got []string
		for _, e := range c.Events {
			got = append(got, fmt.Sprintf("%#x", e.Config))
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("model %s (-want +got):\n%s", model, d)
		}
	}
}

// TestNoCounters says why there are none.
func TestNoCounters(t *testing.T) {
	for machineName, want := range map[string]string{
		"vm":     "no hardware counters: Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz: the kernel sees none, as in most virtual machines",
		"hybrid": "no events for local and remote memory are known for it",
	} {
		if _, err := ChooseCounters(machine(t, machineName)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", machineName, err, want)
		}
	}
}
