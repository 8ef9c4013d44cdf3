// Package record runs a program so that it leaves behind what a profile is made
// from: under qemu-x86_64 with the plugin emulate.so, or under perf record, which can
// also follow what runs already.
//
// # Input
//
// A command and, to emulate, the machine that it shall see, the cache model, and the
// lines of a run file that a plan resolved to; for perf, a command or a process, and the
// events.
//
// # Output
//
// The arenas of all processes that the command started, or perf's file, and how it
// ended. The program's own files, exit status and signals stay its own.
//
// # Method
//
// Emulate: the run's directory (temporary, 0700) holds the run file for the runtime, the
// plugin's configuration, a /sys and /proc/cpuinfo of the named machine that
// QEMU shows the program in the place of the host's, and the socket on which
// each process hands over its arena. Perf: see perf.go.
//
// # Limits
//
// Dynamically linked x86-64 programs. Processes that outlive the command are
// read as far as they have come when it ends.
package record

import (
	"io"
	"os"
	"time"

	"numaopt/internal/arena"
	"numaopt/internal/runfile"
	"numaopt/internal/topo"
)

// Options say what to run and how.
type Options struct {
	Command  []string
	Env      []string // of the program; nil is that of this process
	Topology topo.Topology
	Bind     topo.Bind
	Cache    topo.CacheModel
	Period   uint64
	// Run holds the modules and objects of a plan, if any; Emulate fills in the rest.
	Run runfile.Run

	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Progress, if not nil, is called about once a second with the accesses so far.
	Progress func(accesses uint64, elapsed time.Duration)
}

// Raw is what a run left behind. Close it.
type Raw struct {
	Arenas []*Process
	// Processes counts all that were seen; OtherAccesses is what those made that
	// are not in Arenas any more.
	Processes     int
	OtherAccesses uint64
	Start         time.Time
	Elapsed       time.Duration
	// Status is the command's exit status, 128+signal where a signal ended it.
	Status int
	Signal os.Signal // that ended the command; nil is none
	// Set are the variables that Emulate set because the user had not, such as
	// "OMP_WAIT_POLICY=passive".
	Set []string
}

// Process is one process image: an exec starts another.
type Process struct {
	PID  int
	File arena.File
	Size int64
}

// Close releases the arenas.
func (r *Raw) Close() {
	for _, p := range r.Arenas {
		p.File.Close()
	}
	r.Arenas = nil
}
