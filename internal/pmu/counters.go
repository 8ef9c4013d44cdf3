package pmu

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"numaopt/internal/topo"
)

// What counters count. LastMisses are reads that the last cache did not serve, of
// which those of RemoteAccess went to another node.
const (
	LocalDRAM    Role = "local DRAM"
	RemoteDRAM   Role = "remote DRAM"
	RemoteCache  Role = "remote caches"
	LastMisses   Role = "LLC misses"
	RemoteAccess Role = "remote accesses"
	MemoryRead   Role = "memory read"    // by a node's controllers, 64 bytes each
	MemoryWrite  Role = "memory written" // as above
	Link         Role = "interconnect"   // data flits sent, nine for 64 bytes
)

// Counters are the events that count where a program's data came from.
type Counters struct {
	Events []Event // of the program
	// Uncore are events of the machine's memory controllers and links; each is
	// counted on the CPUs of UncoreCPUs, one for a socket.
	Uncore     []Event
	UncoreCPUs map[string][]int // by device
	// What says what the program's events count.
	What string
}

// fills are libpfm4's names for events of local DRAM, remote DRAM and remote caches.
type fills struct{ model, event, local, remote, cache string }

// ChooseCounters finds the counters of a machine.
func ChooseCounters(m *Machine) (*Counters, error) {
	c := &Counters{UncoreCPUs: map[string][]int{}}
	var err error
	switch {
	case m.has("cpu", "type") && m.pfmModel() != "":
		c.What = "loads that retired, prefetches and stores not counted"
		err = c.add(m, intelFills(m.pfmModel()))
	case m.has("cpu", "type") && m.zen() != "":
		c.What = "fills of the L1 data cache, prefetches among them"
		err = c.add(m, zenFills(m.zen()))
	case m.has("armv8_pmuv3_0", "events/remote_access"):
		c.What = "reads that the last cache did not serve; remote ones from DRAM or a cache, local those that are not remote"
		err = c.arm(m)
	default:
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("no hardware counters: %w", m.noCounters(err))
	}
	if !slices.ContainsFunc(c.Events, func(e Event) bool { return e.Role == RemoteCache || e.Role == RemoteAccess }) {
		c.What += ", and lines from remote caches not counted"
	}
	c.uncore(m)
	return c, nil
}

// noCounters says why where nothing is known to count by.
func (m *Machine) noCounters(err error) error {
	switch {
	case err != ErrNone:
		return err
	case len(m.devices("cpu")) == 0 && len(m.devices("arm")) == 0:
		return fmt.Errorf("%s: the kernel sees none, as in most virtual machines; numaopt profile counts by emulation", m.Model())
	}
	return fmt.Errorf("%s: no events for local and remote memory are known for it", m.Model())
}

func intelFills(model string) fills {
	f := fills{model: model, local: "LOCAL_DRAM", remote: "REMOTE_DRAM"}
	switch model {
	case "nhm", "wsm":
		f.event = "MEM_UNCORE_RETIRED"
		return f
	case "snb_ep":
		f.event = "MEM_LOAD_UOPS_LLC_MISS_RETIRED"
		return f
	case "ivb_ep":
		// libpfm4's LOCAL_DRAM leaves out loads that had to snoop; both bits are Intel's
		// (Linux, tools/perf/pmu-events/arch/x86/ivytown/cache.json), as in REMOTE_DRAM's 0xc.
		f.event, f.local = "MEM_LOAD_UOPS_LLC_MISS_RETIRED", "0x3"
	case "hsw_ep", "bdw_ep":
		f.event = "MEM_LOAD_UOPS_L3_MISS_RETIRED"
	default:
		f.event = "MEM_LOAD_L3_MISS_RETIRED"
	}
	f.cache = "REMOTE_HITM REMOTE_FWD"
	return f
}

// zen is libpfm4's name of an AMD core; Zen 5 counts fills by Zen 4's encodings
// (Linux, tools/perf/pmu-events/arch/x86/amdzen5, ls_any_fills_from_sys).
func (m *Machine) zen() string {
	model, err := strconv.Atoi(m.info["model"])
	if m.info["vendor_id"] != "AuthenticAMD" || err != nil {
		return ""
	}
	switch family := m.info["cpu family"]; {
	case family == "23" && model >= 0x30: // before that is Zen 1, whose events are not known
		return "amd64_fam17h_zen2"
	case family == "25" && (model >= 0x10 && model < 0x20 || model >= 0x60), family == "26":
		return "amd64_fam19h_zen4"
	case family == "25":
		return "amd64_fam19h_zen3"
	}
	return ""
}

func zenFills(model string) fills {
	switch model {
	case "amd64_fam17h_zen2":
		return fills{model, "DATA_CACHE_REFILLS_FROM_SYSTEM", "LS_MABRESP_LCL_DRAM", "LS_MABRESP_RMT_DRAM", "LS_MABRESP_RMT_CACHE"}
	case "amd64_fam19h_zen3":
		return fills{model, "ANY_DATA_CACHE_FILLS_FROM_SYSTEM", "MEM_IO_LCL", "MEM_IO_RMT", "EXT_CACHE_RMT"}
	}
	return fills{model, "ANY_DATA_CACHE_FILLS_FROM_SYSTEM", "DRAM_IO_NEAR", "DRAM_IO_FAR", "FAR_CACHE_NEAR_FAR"}
}

// add encodes the events that f names.
func (c *Counters) add(m *Machine, f fills) error {
	for _, kind := range []struct {
		role  Role
		names string
	}{{LocalDRAM, f.local}, {RemoteDRAM, f.remote}, {RemoteCache, f.cache}} {
		for _, name := range strings.Fields(kind.names) {
			full := f.event + ":" + name
			config, config1, err := pfmEncode(f.model + "::" + full)
			if err != nil {
				return err
			}
			c.Events = append(c.Events, Event{Device: "cpu", Name: full, Role: kind.role, Config: config, Config1: config1, From: "libpfm4 " + f.model})
		}
	}
	return nil
}

// arm uses the architecture's own events, which the kernel names (drivers/perf,
// armv8_pmuv3_event_attrs).
func (c *Counters) arm(m *Machine) error {
	for _, kind := range []struct {
		role Role
		name string
	}{{LastMisses, "ll_cache_miss_rd"}, {RemoteAccess, "remote_access"}} {
		e := Event{Device: "armv8_pmuv3_0", Name: kind.name, Role: kind.role, From: "sysfs"}
		terms := m.text(path.Join(devices, e.Device, "events", kind.name))
		if terms == "" {
			return ErrNone
		}
		if err := m.encode(&e, terms); err != nil {
			return err
		}
		c.Events = append(c.Events, e)
	}
	return nil
}

// uncore adds what can be counted at the memory controllers, by the kernel's own
// names, and at the links of processors that libpfm4 knows. Without them the
// program's counters stand alone.
func (c *Counters) uncore(m *Machine) {
	for _, device := range m.devices("uncore_imc") {
		for _, kind := range []struct {
			role Role
			name string
		}{{MemoryRead, "cas_count_read"}, {MemoryWrite, "cas_count_write"}} {
			e := Event{Device: device, Name: device + "-" + kind.name, Role: kind.role, From: "sysfs"}
			if terms := m.text(path.Join(devices, device, "events", kind.name)); terms != "" && m.encode(&e, terms) == nil {
				c.addUncore(m, e)
			}
		}
	}
	model := m.pfmModel()
	if model == "clx" {
		model = "skx" // the same uncore
	}
	config, err := pfmCode(model + "_unc_upi0::UNC_UPI_TxL_FLITS:ALL_DATA")
	if err != nil {
		return
	}
	for _, device := range m.devices("uncore_upi") {
		c.addUncore(m, Event{Device: device, Name: device + "-data", Role: Link, Config: config, From: "libpfm4 " + model})
	}
}

func (c *Counters) addUncore(m *Machine, e Event) {
	cpus, err := topo.ParseList(m.text(path.Join(devices, e.Device, "cpumask")))
	if err != nil || len(cpus) == 0 {
		return
	}
	c.Uncore, c.UncoreCPUs[e.Device] = append(c.Uncore, e), cpus
}
