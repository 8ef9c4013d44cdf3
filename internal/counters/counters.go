// Package counters counts where a program's data came from, without samples: from its
// node's own memory, from that of others, or from their caches.
//
// # Input
//
// The processor's events (pmu) and a command.
//
// # Output
//
// A Result: counts and bytes of the program with all that it starts, and of each
// node's memory controllers where this user may count those.
//
// # Method
//
// The events are opened on a thread of this process, disabled; the program is
// started from it, inherits them, and its exec enables them. perf stat does the same
// but does not tell when a signal ended the program (it exits with 0), and would be
// one more thing to install. Counts of events that took turns on the counters are
// scaled by the time that they were there.
//
// # Limits
//
// Counts of user space. Controllers and links are those of the whole machine,
// whoever uses them.
package counters

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"numaopt/internal/pmu"
	"numaopt/internal/record"
	"numaopt/internal/topo"
)

// Options say what to count and how.
type Options struct {
	Machine  *pmu.Machine
	Topology topo.Topology // of the machine, for the node of a CPU
	Counters *pmu.Counters
	Open     pmu.Opener
	Command  []string

	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Traffic is what one run of the program cost, in cache lines.
type Traffic struct {
	LocalDRAM   float64 `json:"local_dram"`
	RemoteDRAM  float64 `json:"remote_dram"`
	RemoteCache float64 `json:"remote_caches"`
	// Nodes are controllers and links, whoever used them; empty where they were not
	// counted.
	Nodes   []Node        `json:"nodes,omitempty"`
	Elapsed time.Duration `json:"elapsed_ns"`
	Status  int           `json:"exit_status"` // 128+signal where a signal ended it
	// Running is the least part of the time, in [0,1], that an event was on a counter.
	Running float64 `json:"running"`
}

// Node is what a node's memory controllers and links moved, in bytes.
type Node struct {
	Node    int     `json:"node"`
	Read    float64 `json:"read_bytes"`
	Written float64 `json:"written_bytes"`
	Sent    float64 `json:"sent_bytes"` // to other nodes; 0 where links are not counted
}

// Remote is the part of the lines, in per cent, that came from other nodes.
func (t *Traffic) Remote() float64 {
	remote := t.RemoteDRAM + t.RemoteCache
	return 100 * remote / (t.LocalDRAM + remote)
}

// counter is an open event.
type counter struct {
	event pmu.Event
	node  topo.NodeID // of a controller or link
	fd    int
}

// Count runs the command once. warnings say what could not be counted. The error is
// the kernel's (a *pmu.OpenError), of a program that cannot be started or, with t, of
// an event that was not counted though the program has run.
func Count(ctx context.Context, opt Options) (t *Traffic, warnings []string, err error) {
	// The program inherits the events of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	mine, err := opt.open()
	defer closeAll(mine)
	if err != nil {
		return nil, nil, err
	}
	shared, err := opt.openUncore()
	defer closeAll(shared)
	if err != nil {
		warnings = append(warnings, fmt.Sprintf("memory controllers and links are not counted: %v", err))
	}
	cmd := exec.Command(opt.Command[0], opt.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = opt.Stdin, opt.Stdout, opt.Stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	t = &Traffic{Running: 1}
	if t.Status, err = record.Wait(ctx, cmd, func() {}); err != nil {
		return nil, nil, err
	}
	t.Elapsed = time.Since(start)
	if err := t.readNodes(shared, len(opt.Topology.Nodes)); err != nil {
		warnings = append(warnings, fmt.Sprintf("memory controllers and links are not told: %v", err))
	}
	return t, warnings, t.read(mine)
}

// open opens the events that the program is to inherit.
func (opt *Options) open() (open []counter, err error) {
	for _, e := range opt.Counters.Events {
		fd, err := opt.Open(opt.Machine.ProgramAttr(&e), 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return open, opt.Machine.CounterError(&e, false, err)
		}
		open = append(open, counter{event: e, fd: fd})
	}
	return open, nil
}

// openUncore opens the events of the machine: all, or none.
func (opt *Options) openUncore() (open []counter, err error) {
	for _, e := range opt.Counters.Uncore {
		for _, cpu := range opt.Counters.UncoreCPUs[e.Device] {
			fd, err := opt.Open(opt.Machine.CounterAttr(&e), -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
			if err != nil {
				closeAll(open)
				return nil, opt.Machine.CounterError(&e, true, err)
			}
			open = append(open, counter{e, opt.Topology.NodeOf(cpu), fd})
		}
	}
	return open, nil
}

func closeAll(open []counter) {
	for _, c := range open {
		unix.Close(c.fd)
	}
}

// value is a counter's, scaled from the part of the time, in [0,1], that it was
// running. One that never ran is an error: 0 would be taken for a count.
func (c *counter) value() (value, running float64, err error) {
	var b [3 * 8]byte
	n, err := unix.Read(c.fd, b[:])
	if err != nil || n != len(b) {
		return 0, 0, fmt.Errorf("reading %s: %d bytes, %w", c.event.Name, n, err)
	}
	var words [3]uint64 // value, time enabled, time running
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	if words[2] == 0 {
		return 0, 0, fmt.Errorf("%s was not counted: it never had a counter, because others have them (sysctl kernel.nmi_watchdog=0, and end other profilers) or the program was too short", c.event.Name)
	}
	running = float64(words[2]) / float64(max(words[1], words[2]))
	return float64(words[0]) / running, running, nil
}

// read adds up the program's counters.
func (t *Traffic) read(counters []counter) error {
	sum := map[pmu.Role]float64{}
	for i := range counters {
		v, running, err := counters[i].value()
		if err != nil {
			return err
		}
		t.Running = min(t.Running, running)
		sum[counters[i].event.Role] += v
	}
	t.LocalDRAM, t.RemoteDRAM, t.RemoteCache = sum[pmu.LocalDRAM], sum[pmu.RemoteDRAM], sum[pmu.RemoteCache]
	if all, ok := sum[pmu.LastMisses]; ok {
		t.RemoteDRAM = sum[pmu.RemoteAccess]
		t.LocalDRAM = max(0, all-t.RemoteDRAM)
	}
	return nil
}

// readNodes adds up the machine's counters by node, on a machine of so many; where one
// was not counted, none is told.
func (t *Traffic) readNodes(counters []counter, nodes int) error {
	byNode := make([]Node, nodes)
	for i := range counters {
		c := &counters[i]
		v, running, err := c.value()
		if err != nil {
			return err
		}
		t.Running = min(t.Running, running)
		if int(c.node) < nodes && c.node >= 0 {
			byNode[c.node].Node = int(c.node)
			byNode[c.node].add(c.event.Role, v)
		}
	}
	t.Nodes = slices.DeleteFunc(byNode, func(n Node) bool { return n.Read+n.Written+n.Sent == 0 })
	return nil
}

const (
	lineBytes = 64
	flitBytes = lineBytes / 9.0 // a line of data is sent as nine flits, of which one is its head
)

// add adds a controller's or link's count.
func (n *Node) add(role pmu.Role, v float64) {
	switch role {
	case pmu.MemoryRead:
		n.Read += v * lineBytes
	case pmu.MemoryWrite:
		n.Written += v * lineBytes
	case pmu.Link:
		n.Sent += v * flitBytes
	}
}
