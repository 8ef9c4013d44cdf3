package pmu

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Machine is what the kernel tells of a machine, below Root.
type Machine struct {
	root fs.FS
	info map[string]string // of the first processor in /proc/cpuinfo
}

// Read looks at the machine whose /sys and /proc are in root, which is laid out as
// "/"; os.DirFS("/") is this one. What is not there is not known.
func Read(root fs.FS) *Machine {
	m := &Machine{root: root, info: map[string]string{}}
	for _, line := range strings.Split(m.text("proc/cpuinfo"), "\n") {
		if line == "" {
			break // the next processor
		}
		if key, value, ok := strings.Cut(line, ":"); ok {
			m.info[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return m
}

// Model is the processor in words.
func (m *Machine) Model() string {
	switch {
	case m.info["model name"] != "":
		return m.info["model name"]
	case m.info["CPU part"] != "":
		return fmt.Sprintf("Arm implementer %s part %s", m.info["CPU implementer"], m.info["CPU part"])
	}
	return "unknown processor"
}

// MaxRate is the kernel's limit of samples a second and CPU; 0 if not known.
func (m *Machine) MaxRate() uint64 {
	return m.number("proc/sys/kernel/perf_event_max_sample_rate")
}

// number is that in a file; 0 if there is none.
func (m *Machine) number(file string) uint64 {
	n, _ := strconv.ParseUint(m.text(file), 10, 64)
	return n
}

// why says what is missing for samples of addresses.
func (m *Machine) why() string {
	switch {
	case len(m.devices("")) == 0:
		return "this kernel has no performance events (/sys/bus/event_source/devices is not there)"
	case len(m.devices("cpu")) == 0 && len(m.devices("arm")) == 0:
		return "the kernel sees no performance counters, as in most virtual machines; there --source faults samples page faults instead, and --source emulate counts everything"
	case strings.Contains(m.info["vendor_id"], "Intel"):
		return "the kernel offers no mem-loads event (PEBS is off, or this is a virtual machine)"
	case strings.Contains(m.info["vendor_id"], "AMD"):
		return "the kernel offers no ibs_op device (IBS is off in the firmware, or this is a virtual machine)"
	}
	return "the kernel offers no event with data addresses (arm_spe_0 on Arm: it needs CONFIG_ARM_SPE_PMU and kpti=off)"
}

const devices = "sys/bus/event_source/devices"

// devices are the event sources whose name begins so, sorted.
func (m *Machine) devices(prefix string) []string {
	all, _ := fs.ReadDir(m.root, devices) // sorted by name
	var out []string
	for _, e := range all {
		if strings.HasPrefix(e.Name(), prefix) {
			out = append(out, e.Name())
		}
	}
	return out
}

// text is a file's content without the space around it; "" if it is not there.
func (m *Machine) text(file string) string {
	b, _ := fs.ReadFile(m.root, file)
	return strings.TrimSpace(string(b))
}

// has reports whether a device has a file: "events/mem-loads", "format/ldlat".
func (m *Machine) has(device, file string) bool {
	_, err := fs.Stat(m.root, path.Join(devices, device, file))
	return err == nil && device != ""
}

// encode turns terms as sysfs has them ("event=0xcd,umask=0x1,ldlat=3") into the
// words of a perf_event_attr by the device's formats ("config:0-7", "config1:0-15",
// "config:0-7,32-35"). A later term replaces an earlier one of its name.
func (m *Machine) encode(e *Event, terms string) error {
	values := map[string]uint64{}
	for _, term := range strings.Split(terms, ",") {
		name, text, given := strings.Cut(strings.TrimSpace(term), "=")
		v := uint64(1)
		if given {
			var err error
			if v, err = strconv.ParseUint(text, 0, 64); err != nil {
				return fmt.Errorf("%s: the term %q of event %s: %w", e.Device, term, e.Name, err)
			}
		}
		values[name] = v
	}
	for name, v := range values {
		format := m.text(path.Join(devices, e.Device, "format", name))
		if format == "" {
			return fmt.Errorf("%s: event %s has the term %q, for which the kernel gives no format", e.Device, e.Name, name)
		}
		if err := e.put(format, v); err != nil {
			return fmt.Errorf("%s: event %s: format %s: %w", e.Device, e.Name, name, err)
		}
	}
	return nil
}

// put stores v in the bits that format names, lowest first.
func (e *Event) put(format string, v uint64) error {
	where, ranges, ok := strings.Cut(format, ":")
	words := map[string]*uint64{"config": &e.Config, "config1": &e.Config1, "config2": &e.Config2}
	word := words[where]
	if !ok || word == nil {
		return fmt.Errorf("%q is not known", format)
	}
	for _, r := range strings.Split(ranges, ",") {
		lowText, highText, isRange := strings.Cut(r, "-")
		if !isRange {
			highText = lowText
		}
		low, err1 := strconv.Atoi(lowText)
		high, err2 := strconv.Atoi(highText)
		if err1 != nil || err2 != nil || low > high || high > 63 {
			return fmt.Errorf("%q is not known", format)
		}
		mask := ^uint64(0) >> (63 - (high - low))
		*word = *word&^(mask<<low) | v&mask<<low
		if high-low < 63 {
			v >>= high - low + 1
		} else {
			v = 0
		}
	}
	if v != 0 {
		return fmt.Errorf("the value does not fit into %q", format)
	}
	return nil
}
