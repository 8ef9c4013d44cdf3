package probe

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"numaopt/internal/units"
)

// sortPairs puts them in the order that Table promises.
func sortPairs(pairs []Pair) {
	slices.SortFunc(pairs, func(a, b Pair) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
}

const (
	wordBytes = 8
	lineWords = 64 / wordBytes
	// stride is how far links of the chain are apart: two lines, as processors
	// fetch lines in pairs.
	stride = 2 * lineWords
)

// chain is an order of the links of a buffer, the same for all nodes.
type chain []uint32

// newChain is a random cycle: the order in which all links are visited.
func newChain(size units.Bytes) chain {
	c := make(chain, int64(size)/(stride*wordBytes))
	for i := range c {
		c[i] = uint32(i)
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	random.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
	return c
}

// buffer is memory on one node. word[i], for i a link, is the next link.
type buffer struct {
	mem   []byte
	words []uint64
	links int
}

// mpolBind is MPOL_BIND of linux/mempolicy.h: other policies go to another node before
// the kernel gives up pages of files. Where the node is full it would end this process;
// what is asked for is a quarter of what there is (Options.buffer).
const mpolBind = 2

// place lays the chain into memory on a node, and is an error if it is not there.
func (c chain) place(size units.Bytes, node int) (*buffer, error) {
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("mmap of %v: %w", size, err)
	}
	b := &buffer{mem: mem, words: unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), len(mem)/wordBytes), links: len(c)}
	unix.Madvise(mem, unix.MADV_HUGEPAGE) //nolint:errcheck // advice; huge says what came of it
	mask := make([]uint64, node/64+1)
	mask[node/64] = 1 << (node % 64)
	if _, _, errno := unix.Syscall6(unix.SYS_MBIND, addr(mem), uintptr(len(mem)), mpolBind, uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*64+1), 0); errno != 0 {
		b.free()
		return nil, fmt.Errorf("mbind: %s (%d)", unix.ErrnoName(errno), int(errno))
	}
	for i, link := range c {
		b.words[int(link)*stride] = uint64(c[(i+1)%len(c)]) * stride
	}
	if err := b.isOn(node); err != nil {
		b.free()
		return nil, err
	}
	return b, nil
}

func addr(mem []byte) uintptr { return uintptr(unsafe.Pointer(&mem[0])) }

func (b *buffer) free() {
	if b != nil {
		unix.Munmap(b.mem) //nolint:errcheck // ours, and whole
	}
}

// isOn asks the kernel where the pages are.
func (b *buffer) isOn(node int) error {
	n := len(b.mem) / units.PageSize
	pages, status := make([]uintptr, n), make([]int32, n)
	for i := range pages {
		pages[i] = addr(b.mem) + uintptr(i*units.PageSize)
	}
	_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, 0, uintptr(n), uintptr(unsafe.Pointer(&pages[0])), 0, uintptr(unsafe.Pointer(&status[0])), 0)
	if errno != 0 {
		return fmt.Errorf("move_pages: %s (%d)", unix.ErrnoName(errno), int(errno))
	}
	elsewhere := 0
	for _, at := range status {
		if int(at) != node {
			elsewhere++
		}
	}
	if elsewhere > 0 {
		return fmt.Errorf("%d of %d pages are not on node %d: it has no room", elsewhere, n, node)
	}
	return nil
}

// huge is whether the kernel gave huge pages for all of it.
func (b *buffer) huge() bool {
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(maps, fmt.Appendf(nil, "\n%x-", addr(b.mem)))
	_, rest, _ = bytes.Cut(rest, []byte("AnonHugePages:"))
	var kib int
	fmt.Sscanf(string(rest[:min(40, len(rest))]), "%d kB", &kib) //nolint:errcheck // 0 then
	return ok && kib*1024 >= len(b.mem)*9/10
}

// measure is the latency for the first of a node's CPUs and the bandwidth of all.
func (b *buffer) measure(cpus []int) (ns, gbs float64, err error) {
	err = on(cpus[:1], func(int) { ns = b.latency() })
	if err != nil {
		return 0, 0, err
	}
	gbs, err = b.bandwidth(cpus)
	return ns, gbs, err
}

// on runs f on a thread of its own on each CPU, all at once. The threads end with f.
func on(cpus []int, f func(i int)) error {
	var all sync.WaitGroup
	errs := make([]error, len(cpus))
	for i, cpu := range cpus {
		all.Go(func() {
			runtime.LockOSThread() // not unlocked: the thread ends here, and its binding with it
			var set unix.CPUSet
			set.Set(cpu)
			if errs[i] = unix.SchedSetaffinity(0, &set); errs[i] == nil {
				f(i)
			}
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("binding a thread to CPU %d: %w", cpus[i], err)
		}
	}
	return nil
}

// Times: long enough that a tick of the clock or an interrupt is nothing, short
// enough that a machine of 8 nodes is done in a minute.
const (
	passTime = 40 * time.Millisecond
	passes   = 9
)

// latency is the median of some passes along the chain, in ns for a load. Before
// those it goes as far as to have left behind what other pairs left in the caches.
func (b *buffer) latency() float64 {
	steps := 1 << 12
	at, took := uint64(0), time.Duration(0)
	for took < passTime && steps < b.links {
		steps *= 2
		at, took = follow(b.words, at, steps)
	}
	var each []float64
	for range passes {
		at, took = follow(b.words, at, steps)
		each = append(each, float64(took.Nanoseconds())/float64(steps))
	}
	slices.Sort(each)
	return each[len(each)/2]
}

// follow goes along the chain. Each load's address is the word that the one before it
// loaded, so that no two are under way at once.
//
//go:noinline
func follow(words []uint64, at uint64, steps int) (uint64, time.Duration) {
	start := time.Now()
	for range steps {
		at = words[at]
	}
	return at, time.Since(start)
}

// bandwidth is what all CPUs together read, in 10^9 bytes a second: each its part of
// the buffer, from one line of each to the next, again and again.
func (b *buffer) bandwidth(cpus []int) (float64, error) {
	const least = passTime * 5
	read := make([]float64, len(cpus)) // bytes a second
	part := len(b.words) / len(cpus) &^ (lineWords - 1)
	err := on(cpus, func(i int) {
		mine := b.words[i*part : (i+1)*part]
		touch(mine) // the first pass waits for the others' threads
		start, lines := time.Now(), 0
		for time.Since(start) < least {
			touch(mine)
			lines += len(mine) / lineWords
		}
		read[i] = float64(lines) * lineWords * wordBytes / time.Since(start).Seconds()
	})
	var sum float64
	for _, v := range read {
		sum += v
	}
	return sum / 1e9, err
}

// touch loads a word of every line, four at once.
//
//go:noinline
func touch(words []uint64) uint64 {
	var a, b, c, d uint64
	for len(words) >= 4*lineWords {
		a += words[0]
		b += words[lineWords]
		c += words[2*lineWords]
		d += words[3*lineWords]
		words = words[4*lineWords:]
	}
	return a + b + c + d
}
