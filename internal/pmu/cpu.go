package pmu

import (
	"fmt"
	"slices"
	"strings"
)

const (
	pebs = "Intel PEBS"
	ibs  = "AMD IBS"
	spe  = "Arm SPE"
)

// Periods where the user gives none. Loads that pass the threshold of 3 cycles are
// all loads: one in 20,000 is some 50,000 samples a second and CPU at most.
const (
	pebsPeriod = 20011 // a prime: loops of a round number of loads are not sampled at one place
	ibsPeriod  = 262144
	spePeriod  = 4096
)

// intel samples loads and stores through PEBS. The kernel names the events
// (arch/x86/events/intel/core.c, mem_ld_*, mem_st_*), and their encodings are taken:
// Event.From says where libpfm4 has the same.
func intel(m *Machine, opt Options) (*Recipe, error) {
	r := &Recipe{Kind: pebs, Period: pebsPeriod}
	modifiers := "Pu"
	if opt.Kernel {
		modifiers = "P"
	}
	latency := opt.Latency
	if latency == 0 {
		latency = 3
	}
	if latency < 3 || latency > 65535 {
		return nil, optionf("a latency of %d cycles: Intel's threshold is 3 to 65535", latency)
	}
	for _, device := range m.devices("cpu") {
		if device != "cpu" && device != "cpu_core" && device != "cpu_atom" || !m.has(device, "events/mem-loads") {
			continue
		}
		loads, err := m.intelEvent(device, "mem-loads", Loads, latency)
		if err != nil {
			return nil, err
		}
		text := loads.perf(modifiers)
		if m.has(device, "events/mem-loads-aux") {
			aux, err := m.intelEvent(device, "mem-loads-aux", Auxiliary, 0)
			if err != nil {
				return nil, err
			}
			// The group's leader is the auxiliary event; both are precise.
			text = fmt.Sprintf("{%s,%s}:%s", aux.perf(""), loads.perf(""), modifiers)
			r.Events = append(r.Events, aux)
		}
		r.Events = append(r.Events, loads)
		r.Select = append(r.Select, "-e", text)
		if m.has(device, "events/mem-stores") {
			stores, err := m.intelEvent(device, "mem-stores", Stores, 0)
			if err != nil {
				return nil, err
			}
			r.Events = append(r.Events, stores)
			r.Select = append(r.Select, "-e", stores.perf(modifiers))
		}
	}
	if len(r.Events) == 0 {
		return nil, ErrNone
	}
	if latency == 3 && opt.Latency == 0 {
		r.Notes = append(r.Notes, "all loads are sampled alike (threshold 3 cycles); --ldlat 30 leaves cache hits out, for the same number of DRAM samples at less cost")
	}
	return r, nil
}

// pfmNames are the events as libpfm4 names them, by the kernel's name; the first
// that it knows for the processor is taken.
var pfmNames = map[string][]string{
	"mem-loads":  {"MEM_TRANS_RETIRED:LOAD_LATENCY", "MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD", "MEM_INST_RETIRED:LATENCY_ABOVE_THRESHOLD"},
	"mem-stores": {"MEM_TRANS_RETIRED:STORE_SAMPLE", "MEM_INST_RETIRED:ALL_STORES", "MEM_UOPS_RETIRED:ALL_STORES", "MEM_TRANS_RETIRED:PRECISE_STORE"},
}

// intelEvent encodes an event that the kernel names.
func (m *Machine) intelEvent(device, name string, role Role, latency int) (Event, error) {
	e := Event{Device: device, Name: name, Role: role, From: "sysfs"}
	if device != "cpu" {
		e.Name = device + "-" + name
	}
	terms := m.text(fmt.Sprintf("%s/%s/events/%s", devices, device, name))
	if latency != 0 {
		terms += fmt.Sprintf(",ldlat=%d", latency)
	}
	if err := m.encode(&e, terms); err != nil {
		return e, err
	}
	model := m.pfmModel()
	if device != "cpu" || model == "" {
		return e, nil
	}
	for _, known := range pfmNames[name] {
		full := model + "::" + known
		if latency != 0 {
			full += fmt.Sprintf(":ldlat=%d", latency)
		}
		if config, config1, err := pfmEncode(full); err == nil {
			// The kernel knows which of the processor's events it set up for sampling.
			if config == e.Config && config1 == e.Config1 {
				e.From = "libpfm4 " + model
			}
			break
		}
	}
	return e, nil
}

// pfmModel is libpfm4's name of the core of an Intel processor; "" where none is
// known. Models are those of lib/pfmlib_intel_*.c.
func (m *Machine) pfmModel() string {
	if m.info["vendor_id"] != "GenuineIntel" || m.info["cpu family"] != "6" {
		return ""
	}
	switch m.info["model"] {
	case "26", "30", "46":
		return "nhm"
	case "37", "44", "47":
		return "wsm"
	case "45":
		return "snb_ep"
	case "62":
		return "ivb_ep"
	case "63":
		return "hsw_ep"
	case "79", "86":
		return "bdw_ep"
	case "85":
		if len(m.info["stepping"]) == 1 && m.info["stepping"] >= "5" {
			return "clx"
		}
		return "skx"
	case "106", "108":
		return "icx"
	case "143", "207":
		return "spr"
	}
	return ""
}

// amd samples micro-operations through IBS Op. The kernel says what this one can
// in the device's formats (arch/x86/events/amd/ibs.c): l3missonly from Zen 4,
// ldlat from Zen 5, swfilt, by which the kernel itself leaves its own samples
// out, from Linux 6.14.
func amd(m *Machine, opt Options) (*Recipe, error) {
	const device = "ibs_op"
	if !slices.Contains(m.devices("ibs"), device) {
		return nil, ErrNone
	}
	r := &Recipe{Kind: ibs, Period: ibsPeriod}
	e := Event{Device: device, Name: "ibs_op", Role: Both, From: "sysfs"}
	var terms []string
	if m.has(device, "format/cnt_ctl") {
		terms = append(terms, "cnt_ctl=1") // count micro-operations, not cycles: all of them have the same chance
	}
	if opt.Latency != 0 {
		if !m.has(device, "format/ldlat") {
			return nil, optionf("--ldlat %d: this processor's IBS has no filter by latency (Zen 5 has); without it all accesses are sampled", opt.Latency)
		}
		if opt.Latency < 128 || opt.Latency > 2048 || opt.Latency%128 != 0 {
			return nil, optionf("--ldlat %d: the filter of IBS takes 128 to 2048 cycles in steps of 128", opt.Latency)
		}
		terms = append(terms, "l3missonly=1", fmt.Sprintf("ldlat=%d", opt.Latency))
		r.Notes = append(r.Notes, "with --ldlat only loads beyond the L3 are sampled: shares of levels are of those")
	}
	modifiers := ""
	switch {
	case opt.Kernel:
	case m.has(device, "format/swfilt"):
		terms, modifiers = append(terms, "swfilt=1"), "u"
	default:
		r.KernelToo = true
		r.Notes = append(r.Notes, "IBS cannot leave the kernel out: its samples are dropped when the recording is read")
	}
	if len(terms) > 0 {
		if err := m.encode(&e, strings.Join(terms, ",")); err != nil {
			return nil, err
		}
	}
	if !m.perProcessIBS() {
		r.SystemWide = true
		r.Notes = append(r.Notes, "IBS follows no single process before Linux 6.2: the whole machine is recorded, and the rest dropped when the recording is read; that needs CAP_PERFMON or kernel.perf_event_paranoid <= 0")
	}
	r.Events, r.Select = []Event{e}, []string{"-e", e.perf(modifiers)}
	return r, nil
}

// perProcessIBS is whether IBS can follow a process: from Linux 6.2 on.
func (m *Machine) perProcessIBS() bool {
	var major, minor int
	if _, err := fmt.Sscanf(m.text("proc/sys/kernel/osrelease"), "%d.%d", &major, &minor); err != nil {
		return true // perf will say
	}
	return major > 6 || major == 6 && minor >= 2
}

// arm samples loads and stores through SPE (drivers/perf/arm_spe_pmu.c): its
// samples are a trace beside those of perf.
func arm(m *Machine, opt Options) (*Recipe, error) {
	found := m.devices("arm_spe_")
	if len(found) == 0 {
		return nil, ErrNone
	}
	r := &Recipe{Kind: spe, Period: spePeriod}
	if opt.Latency < 0 || opt.Latency > 4095 {
		return nil, optionf("--ldlat %d: the filter of SPE takes up to 4095 cycles", opt.Latency)
	}
	if opt.Frequency != 0 {
		// arm_spe_pmu_event_init answers EINVAL.
		return nil, optionf("-F %d: Arm SPE has a period only: -c N", opt.Frequency)
	}
	for _, device := range found {
		e := Event{Device: device, Name: device, Role: Both, From: "sysfs"}
		terms := "ts_enable=1,load_filter=1,store_filter=1"
		if m.has(device, "format/pa_enable") && m.text("proc/sys/kernel/perf_event_paranoid") == "-1" {
			terms += ",pa_enable=1"
		}
		if m.has(device, "format/jitter") {
			terms += ",jitter=1"
		}
		if opt.Latency > 0 {
			terms += fmt.Sprintf(",min_latency=%d", opt.Latency)
		}
		if err := m.encode(&e, terms); err != nil {
			return nil, err
		}
		modifiers := "u"
		if opt.Kernel {
			modifiers = ""
		}
		r.Events = append(r.Events, e)
		r.Select = append(r.Select, "-e", e.perf(modifiers))
	}
	return r, nil
}
