// Package doctor says what numaopt can do on a machine, what is missing, and the
// one fix for each.
//
// # Input
//
// The machine's files (an fs.FS laid out as "/": /sys, /proc) and a Prober for
// what files do not tell: programs, system calls, numaopt's own parts.
//
// # Output
//
// A Report: findings, each with its state, what it means for numaopt and a fix
// where there is one, and from them the abilities.
//
// # Limits
//
// It looks; it changes nothing, and it does not try a whole profile or guest.
package doctor

import (
	"context"
	"io/fs"

	"golang.org/x/sys/unix"

	"numaopt/internal/topo"
)

// State is how a finding is.
type State string

const (
	OK      State = "ok"
	Note    State = "note"    // works, but know this
	Limited State = "limited" // something numaopt can do works less well
	Missing State = "missing" // something numaopt can do does not work
)

// Finding is one thing looked at.
type Finding struct {
	Name  string `json:"name"` // "topology"
	State State  `json:"state"`
	Text  string `json:"text"`          // what was found, and what that means for numaopt
	Fix   string `json:"fix,omitempty"` // one command, or one sentence
}

// Ability is one thing that a user can want.
type Ability struct {
	Name  string `json:"name"` // the command: "profile"
	Works bool   `json:"works"`
	Text  string `json:"text"` // how, or what it lacks
}

// Report is what Examine found.
type Report struct {
	Topology  *topo.Topology `json:"topology,omitempty"` // what this process may use; nil is not known
	Findings  []Finding      `json:"findings"`
	Abilities []Ability      `json:"abilities"`
}

// Prober is what doctor asks of a machine beyond its files.
type Prober interface {
	// Path is where the program called name is; fs.ErrNotExist if nowhere.
	Path(name string) (string, error)
	// Version is the first line that the program prints when asked for its version.
	Version(ctx context.Context, path string) (string, error)
	// Lib is the path of a part of numaopt, such as "emulate.so".
	Lib(name string) (string, error)
	// GuestKernel is the release of the kernel that the lab would boot.
	GuestKernel() (string, error)
	// PerfEventOpen is the system call, a pmu.Opener.
	PerfEventOpen(attr *unix.PerfEventAttr, pid, cpu, group, flags int) (fd int, err error)
	// MemoryPolicy tries mbind and move_pages on a page of its own.
	MemoryPolicy() error
}

// Works reports whether any ability that needs a machine is there: without one,
// numaopt can only read files made elsewhere.
func (r *Report) Works() bool {
	for _, a := range r.Abilities {
		if a.Works {
			return true
		}
	}
	return false
}

// state is the state of the finding called name, OK where there is none.
func (r *Report) state(name string) State {
	for _, f := range r.Findings {
		if f.Name == name {
			return f.State
		}
	}
	return OK
}

// Examine looks at the machine that root shows and p can be asked about.
func Examine(ctx context.Context, root fs.FS, p Prober) *Report {
	r := &Report{}
	h := host{root}
	r.topology(h)
	r.add(h.kernel(), h.cpuset(r.Topology), h.paranoid(), h.memoryEvents(p), h.counters(p))
	r.add(perf(ctx, p))
	r.add(emulators(ctx, p)...)
	r.add(parts(p), guestKernel(p), memoryPolicy(p, h))
	r.add(h.balancing(), h.hugePages(), h.mapCount(), h.libnuma())
	r.abilities()
	return r
}

func (r *Report) add(fs ...Finding) {
	for _, f := range fs {
		if f.Name != "" {
			r.Findings = append(r.Findings, f)
		}
	}
}

// abilities follow from the findings.
func (r *Report) abilities() {
	missing := func(names ...string) string {
		for _, n := range names {
			if r.state(n) == Missing {
				return n
			}
		}
		return ""
	}
	say := func(name, how string, needs ...string) {
		a := Ability{Name: name, Works: true, Text: how}
		if n := missing(needs...); n != "" {
			a.Works, a.Text = false, "see "+n
		}
		r.Abilities = append(r.Abilities, a)
	}
	profile := "by emulation: every access is counted, and the program takes many times as long"
	if r.state("memory events") == OK && r.state("perf") == OK {
		profile = "by samples of the processor (--source pmu); by emulation, every access is counted, and the program takes many times as long"
	}
	say("profile", profile, "topology", "qemu-user", "parts")
	apply := "pages are placed before first touch"
	if r.Topology != nil && len(r.Topology.Nodes) == 1 {
		apply = "one node here: runs the program unchanged; a plan takes effect on a machine with more, or in the lab"
	}
	say("apply", apply, "topology", "parts", "memory policy")
	say("lab", "before and after a plan in a virtual machine with several nodes", "parts", "qemu-system", "e2fsprogs", "guest kernel")
	count := Ability{Name: "stat", Works: r.state("counters") == OK, Text: "local and remote memory traffic, counted by the processor"}
	if !count.Works {
		count.Text = "see counters"
	}
	r.Abilities = append(r.Abilities, count)
}
