// Package pmu chooses the events by which the processor at hand samples the
// addresses of loads and stores, and how perf record is to be asked for them.
//
// # Input
//
// What the kernel tells of the processor: /sys/bus/event_source and /proc/cpuinfo,
// below any root (tests have trees of machines).
//
// # Output
//
// A Recipe: the arguments of perf record, raw encodings, and what is to be said of
// it; or an error of what is missing.
//
// # Method
//
// Intel: load latency of PEBS with its threshold, after the auxiliary event where
// the kernel names one, and sampled stores; on a hybrid processor those of each
// kind of core. AMD: IBS Op. Arm: SPE. Encodings are those of the kernel's sysfs;
// libpfm4 has those of counters (ChooseCounters), and tells where it agrees.
//
// # Limits
//
// Whether the kernel lets this user open the events, only opening them tells.
package pmu

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrNone is that the processor, or the virtual machine that it is, samples no
// addresses.
var ErrNone = errors.New("no event of this processor samples the addresses of loads")

// Options are what a user may ask for.
type Options struct {
	// Latency is the threshold in cycles below which loads are not sampled; 0 is the
	// default: 3, where nothing is left out (CGO'12 §2.2).
	Latency int
	// Period is the number of loads (Intel), micro-operations (AMD) or instructions
	// (Arm) from sample to sample; 0 is a default by the processor, unless Frequency.
	Period uint64
	// Frequency is samples a second and CPU, where Period is 0.
	Frequency uint64
	// Kernel asks for accesses by the kernel too.
	Kernel bool
}

// OptionError is an option that the processor at hand cannot honour: the user's to
// change, where other errors say that the processor cannot be sampled.
type OptionError struct{ text string }

func (e *OptionError) Error() string { return e.text }

func optionf(format string, args ...any) error {
	return &OptionError{fmt.Sprintf(format, args...)}
}

// Role is what an event is for.
type Role string

// The roles.
const (
	Loads     Role = "loads"
	Stores    Role = "stores"
	Both      Role = "loads and stores"
	Auxiliary Role = "auxiliary" // has to be counted for another to work; its samples are none
)

// Event is one event of a recipe.
type Event struct {
	Device  string // of /sys/bus/event_source/devices
	Name    string // by which perf and the profile know it
	Role    Role
	Config  uint64 // as perf_event_attr has them
	Config1 uint64
	Config2 uint64
	From    string // "libpfm4 skx" or "sysfs"
}

// Recipe is how to sample on a machine.
type Recipe struct {
	Kind   string // "Intel PEBS", "AMD IBS" or "Arm SPE"
	Events []Event
	// Select are the arguments of perf record that name the events and their period.
	Select []string
	Period uint64 // 0 where samples are by Frequency
	// Frequency is what was asked for, or the kernel's limit if that is less.
	Frequency uint64
	// SystemWide is that the processor's events follow no process: everything is
	// recorded and what is not of the program dropped when it is read.
	SystemWide bool
	// UserOnly is that the kernel leaves its own accesses out.
	UserOnly bool
	// KernelToo is that the processor cannot leave the kernel's accesses out.
	KernelToo bool
	Notes     []string // for the user, one sentence each
}

// Choose makes the recipe for a machine.
func Choose(m *Machine, opt Options) (*Recipe, error) {
	if opt.Period != 0 && opt.Frequency != 0 {
		return nil, optionf("a period and a frequency at once: give one of them")
	}
	for _, try := range []func(*Machine, Options) (*Recipe, error){intel, amd, arm} {
		r, err := try(m, opt)
		if errors.Is(err, ErrNone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r.UserOnly = !opt.Kernel && !r.KernelToo
		r.rate(m, opt)
		return r, nil
	}
	return nil, fmt.Errorf("%w (%s): %s", ErrNone, m.Model(), m.why())
}

const software = "software"

// Faults is the recipe for page faults, which every machine has.
func Faults() *Recipe {
	return &Recipe{Kind: "page faults", Period: 1, UserOnly: true,
		Events: []Event{{Device: software, Name: "page-faults", Role: Both, Config: 2 /* PERF_COUNT_SW_PAGE_FAULTS */, From: "linux/perf_event.h"}},
		Select: []string{"-e", "page-faults:u", "-c", "1"}}
}

// rate settles period or frequency and adds them to the arguments.
func (r *Recipe) rate(m *Machine, opt Options) {
	if opt.Frequency != 0 {
		r.Period, r.Frequency = 0, opt.Frequency
		if limit := m.MaxRate(); limit != 0 && r.Frequency > limit {
			r.Frequency = limit
			r.Notes = append(r.Notes, fmt.Sprintf("%d samples a second are over the kernel's limit: %d (/proc/sys/kernel/perf_event_max_sample_rate)", opt.Frequency, limit))
		}
		r.Select = append(r.Select, "-F", strconv.FormatUint(r.Frequency, 10))
		return
	}
	if opt.Period != 0 {
		r.Period = opt.Period
	}
	if r.Kind == ibs && r.Period%16 != 0 {
		r.Period = max(16, r.Period&^15)
		r.Notes = append(r.Notes, fmt.Sprintf("IBS counts in steps of 16: a sample every %d", r.Period))
	}
	// The kernel refuses less (drivers/perf/arm_spe_pmu.c, event_init).
	if least := m.number(devices + "/arm_spe_0/caps/min_interval"); r.Kind == spe && r.Period < least {
		r.Notes = append(r.Notes, fmt.Sprintf("SPE takes a sample every %d operations at most: not every %d", least, r.Period))
		r.Period = least
	}
	r.Select = append(r.Select, "-c", strconv.FormatUint(r.Period, 10))
}

// events makes the -e argument of terms in a device's slashes, with modifiers.
func (e *Event) perf(modifiers string) string {
	terms := []string{fmt.Sprintf("config=%#x", e.Config)}
	if e.Config1 != 0 {
		terms = append(terms, fmt.Sprintf("config1=%#x", e.Config1))
	}
	if e.Config2 != 0 {
		terms = append(terms, fmt.Sprintf("config2=%#x", e.Config2))
	}
	return fmt.Sprintf("%s/%s,name=%s/%s", e.Device, strings.Join(terms, ","), e.Name, modifiers)
}
