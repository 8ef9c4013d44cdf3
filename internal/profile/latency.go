package profile

import (
	"math/bits"

	"numaopt/internal/topo"
)

// Served is where a load was served, as the processor tells it: more finely than
// Level, with the words of perf mem report.
type Served uint8

// Where loads are served. A cache's word comes before that of the memory behind it:
// HITM is a hit of a line that another core has modified, LFB (line fill buffer) a
// hit of a line that is on its way already, whatever from.
const (
	ServedUnknown Served = iota
	ServedL1
	ServedLFB
	ServedL2
	ServedL3
	ServedLocalHITM   // modified in the cache of another core of the node
	ServedRemoteCache // unmodified in another node's cache
	ServedRemoteHITM
	ServedLocalDRAM
	ServedRemoteDRAM
	ServedPMEM // persistent memory, of whichever node
	ServedCXL  // memory behind CXL, of whichever node
	NumServed  = iota
)

var servedNames = [NumServed]string{"unknown", "L1", "LFB", "L2", "L3", "local HITM", "remote cache", "remote HITM", "local DRAM", "remote DRAM", "PMEM", "CXL"}

func (s Served) String() string {
	if int(s) >= len(servedNames) {
		return servedNames[ServedUnknown]
	}
	return servedNames[s]
}

// Memory reports whether s is memory, not a cache.
func (s Served) Memory() bool { return s >= ServedLocalDRAM }

// HITM reports whether the line was modified in another core's cache.
func (s Served) HITM() bool { return s == ServedLocalHITM || s == ServedRemoteHITM }

// Latency is one cell of the histograms of load latencies: loads of an object from a
// region that took about the same time. Stores have none on most processors, and are
// not in the table.
type Latency struct {
	Object int32 // index in Objects
	Region int32 // index in Regions
	Served Served
	From   topo.NodeID // of the thread
	// To is the node that holds the page: by the sample's physical address; of loads
	// from local and remote memory without one by what the processor said, where that
	// leaves several nodes the page's home; else topo.Unknown.
	To     topo.NodeID
	Bucket int32 // see LatencyBucket
	// Samples were made, and stand for Accesses. Cycles is the sum over these: of each
	// from issue to completion, or of what its processor has for that.
	Samples, Accesses, Cycles uint64
}

const (
	octave = 1 << octaveBits
	// octaveBits makes 8 buckets an octave: a bucket is at most an eighth wide, finer
	// than two runs agree.
	octaveBits = 3
)

// Buckets is how many buckets of latencies there are.
const Buckets = 1 + (64-octaveBits)*octave + octave

// LatencyBucket is the bucket of a latency. Bucket 0 is of loads without one. Up to
// 16 cycles each bucket is one number, above eight share an octave, where a power of
// two ends the octave below it: the bounds of work-time inflation's fig. 15, 17-32,
// 33-64 and so on, are all between buckets.
func LatencyBucket(cycles uint64) int32 {
	if cycles == 0 {
		return 0
	}
	v := cycles - 1
	shift := max(0, bits.Len64(v)-octaveBits-1)
	return int32(1 + shift*octave + int(v>>shift))
}

// BucketBounds is the least and the greatest latency of a bucket, 0 <= bucket < Buckets.
func BucketBounds(bucket int32) (least, most uint64) {
	if bucket == 0 {
		return 0, 0
	}
	v := uint64(bucket) - 1
	shift := uint64(0)
	if v >= 2*octave {
		shift = v/octave - 1
		v -= shift * octave
	}
	// In the last bucket most is 2^64, which is what the longest latency is below.
	return v<<shift + 1, min((v+1)<<shift-1, ^uint64(0)-1) + 1
}

// LineBytes is the size of the cache lines of LineUse.
const LineBytes = 64

// LineUse is what one party, code on a node, did with one cache line that threads of
// several nodes share. Lines that one node alone used, or that nobody wrote, are not
// in the table. Missing are the samples up to a line's first store, that included, where
// none was a hit of what another core's cache had. The table is in the order of objects, offsets and nodes.
type LineUse struct {
	Object int32 // index in Objects
	// Offset is of the line, in bytes from the start of the page of the object's first
	// byte as Page.Index counts, a multiple of LineBytes.
	Offset int64
	Node   topo.NodeID // of the threads
	Region int32       // index in Regions
	Place  int32       // of the code, index in Places; -1 where it is not known, or several
	// Written and Read have bit b where a sampled store or load began at byte b of the
	// line: how many bytes it was of, samples do not tell.
	Written, Read uint64
	// Loads, Stores and HITM are samples; HITM is of the loads those that found the
	// line modified in another core's cache.
	Loads, Stores, HITM uint64
}
