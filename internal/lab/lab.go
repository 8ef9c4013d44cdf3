// Package lab runs a program on a virtual machine with several NUMA nodes and
// counts every access of its user-mode code.
//
// # Input
//
// A command, a topology, optionally a plan. The program runs in one boot of a
// QEMU guest up to three times: as the kernel's first touch places it
// ("default"), with all nodes interleaved ("interleave"), and under the plan
// ("plan"), its threads bound alike.
//
// # Output
//
// A Result: for each run the remote shares, the matrix of accessing node and home,
// pages on plan, exit status.
//
// # Method
//
// The guest sees the host's files read-only through NFS that numaopt itself serves
// (nfs.go), with a fresh writable layer on top for every run, so that nothing is
// copied and each run starts alike. Its init (runtime-c/guest) starts the runs; a
// TCG plugin (runtime-c/plugin/lab.c) counts, through the cache model that emulated
// profiles use too. What the last run changed is carried out on the host's files
// in the end (back.go).
//
// # Limits
//
// Nothing here says anything of time: the guest is some hundred times slower than
// the machine, and remote memory is as fast as local. The window in which accesses
// count opens when the program's main starts and closes at its exit, so start-up
// of the dynamic linker is not in it; with Only, it is open while a thread team is
// in one of the named loops. Caches are simulated from the run's beginning, and are warm
// when a window opens. They are indexed by physical line, an emulated profile's by
// virtual line; the model hashes both, so that the two differ by luck only (up to a
// point where much of the data is gathered at random).
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Options is what to run and on what.
type Options struct {
	Command  []string // the program, found in PATH, and its arguments
	Topology topo.Topology
	Bind     string // compact, spread or none
	Caches   topo.CacheModel
	Plan     string   // path of the plan, empty for none
	Only     []string // loops or functions, as a report names them; empty counts all

	THP       string // transparent huge pages: "never", "always" or "madvise"
	Balancing bool   // the kernel's NUMA balancing
	Memory    units.Bytes
	SelfTest  bool // the four self-tests in the place of Command
	Once      bool // of the runs, only the first
	Pages     bool // count by virtual page, too

	Stdin          io.Reader // nil is /dev/null
	Stdout, Stderr io.Writer // get the output of the last run
	Progress       func(string)

	// Warn is told at once what the user should know while the lab goes on; nil
	// for nobody.
	Warn func(string)

	silence time.Duration // in the place of runSilence, for tests

	Exe string // numaopt itself
	Lib string // directory of lab.so, libnumaopt.so and guest/
}

// BindNone leaves the threads to the kernel in all runs.
const BindNone = "none"

// DefaultMemory is the guest's memory where nothing else is asked for; the host
// gives only what is used.
const DefaultMemory = 4 * units.GiB

// maxCPUs is what the plugin and QEMU's pc machine manage together.
const maxCPUs = 64

// CheckTopology refuses what the lab cannot be given.
func CheckTopology(t topo.Topology) error {
	_, _, err := checkTopology(t)
	return err
}

// checkTopology refuses what QEMU cannot be given: nodes that differ.
func checkTopology(t topo.Topology) (nodes, cpus int, err error) {
	nodes = len(t.Nodes)
	if nodes == 0 || len(t.Nodes[0].CPUs) == 0 {
		return 0, 0, errors.New("topology: no node with a CPU")
	}
	cpus = len(t.Nodes[0].CPUs)
	for _, n := range t.Nodes {
		if len(n.CPUs) != cpus {
			return 0, 0, fmt.Errorf("topology: the lab's nodes have equally many CPUs, such as 4x2")
		}
	}
	if nodes*cpus > maxCPUs {
		return 0, 0, fmt.Errorf("topology: %d CPUs in all; the lab has at most %d", nodes*cpus, maxCPUs)
	}
	return nodes, cpus, nil
}

// Run boots a guest and carries out the runs. The error is about the lab; how the
// program fared is in the Result. An ended ctx ends the guest, and is the error.
func Run(ctx context.Context, opt Options) (*Result, error) {
	nodes, cpus, err := checkTopology(opt.Topology)
	if err != nil {
		return nil, inputError{err}
	}
	if _, err := exec.LookPath(emulator); err != nil {
		return nil, ErrNoQEMU
	}
	kernel, err := findOrFetch(ctx, opt)
	if err != nil {
		return nil, err
	}
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	g := &guest{
		dir: dir, plugin: filepath.Join(opt.Lib, "lab.so"), kernel: kernel, nodes: nodes, cpus: cpus,
		bootSilence: bootSilence, runSilence: cmp.Or(opt.silence, runSilence),
		memory: opt.Memory, caches: opt.Caches, only: len(opt.Only) > 0, pages: opt.Pages, thp: opt.THP, balance: opt.Balancing,
	}
	j, err := newJob(opt, g)
	if err != nil {
		return nil, err
	}
	text, err := j.encode()
	if err != nil {
		return nil, err
	}
	if err := writeInitramfs(filepath.Join(dir, "initramfs"), filepath.Join(opt.Lib, "guest", "init"), kernel, text); err != nil {
		return nil, err
	}
	opt.Progress(fmt.Sprintf("booting a guest of %d nodes x %d CPUs", nodes, cpus))
	w, err := bootTwice(opt, j, func(w *watcher) error {
		if err := writeScratch(filepath.Join(dir, "scratch")); err != nil {
			return err
		}
		return g.boot(ctx, w)
	})
	if err != nil {
		return nil, err
	}
	return w.result(opt, g)
}

// bootTwice carries out the runs by boot, and where the guest falls silent by a
// second boot, from the first run on. What the last run did to the host's files
// is not undone: once that has begun, there is no second boot.
func bootTwice(opt Options, j *job, boot func(*watcher) error) (*watcher, error) {
	w := newWatcher(opt, j)
	err := boot(w)
	if !errors.Is(err, errSilent) {
		w.drop(io.ErrUnexpectedEOF)
		return w, err
	}
	if w.written+w.deleted > 0 || w.file != nil {
		w.drop(err)
		return nil, fmt.Errorf("%w while it sent back what the program wrote: not all of it is there", err)
	}
	why := fmt.Sprintf("%v%s: booting it once more", err, w.where())
	if opt.Warn != nil {
		opt.Warn(why)
	}
	w = newWatcher(opt, j)
	w.again = why
	if err = boot(w); errors.Is(err, errSilent) {
		err = fmt.Errorf("%w%s, twice: the machine may be too busy for it; try a smaller --topology, or --memory", err, w.where())
	}
	w.drop(io.ErrUnexpectedEOF)
	return w, err
}

func findOrFetch(ctx context.Context, opt Options) (Kernel, error) {
	guestDir := filepath.Join(opt.Lib, "guest")
	k, err := FindKernel(guestDir)
	if !errors.Is(err, ErrNoKernel) {
		return k, err
	}
	opt.Progress("downloading a kernel for the guest (27 MB, once)")
	return FetchKernel(ctx, guestDir)
}

// ErrInput marks what is wrong with the command rather than with the machine.
var ErrInput = errors.New("bad input")

// inputError is an error that is ErrInput, too; its text is the error's alone.
type inputError struct{ error }

func (e inputError) Unwrap() []error { return []error{e.error, ErrInput} }

func inputf(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }
