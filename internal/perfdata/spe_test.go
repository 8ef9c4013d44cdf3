package perfdata_test

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
)

// packet is an SPE packet: its header byte and the value behind it, n bytes.
func packet(head byte, v uint64, n int) []byte {
	return append([]byte{head}, binary.LittleEndian.AppendUint64(nil, v)[:n]...)
}

func packets(all ...[]byte) (out []byte) {
	for _, p := range all {
		out = append(out, p...)
	}
	return out
}

// speFile has two loads, a store and a branch. The encodings are those of the Arm
// Architecture Reference Manual, D17 "Statistical Profiling Extension sample record
// protocol".
func speFile() *pt.Writer {
	trace := packets(
		packet(0xb0, 0x400100|1<<63, 8), // PC, non-secure EL0
		packet(0x65, 77, 4),             // context: CONTEXTIDR_EL2
		packet(0x49, 0, 1),              // load
		packet(0x52, 1<<1|1<<2|1<<3|1<<8|1<<9|1<<10, 2),
		packet(0x98, 321, 2), // total latency
		packet(0x99, 21, 2),  // issue latency
		packet(0x9a, 1, 2),   // translation latency
		packet(0xb2, 0xaa007f0011112222, 8),
		packet(0xb3, 1<<63|0x2_1234_5678, 8),
		packet(0x43, 0xd, 1), // source: another node
		packet(0x71, 5000, 8),
		[]byte{0, 0, 0},
		packet(0xb0, 0xffff800008001234|1<<61, 8), // in the kernel
		packet(0x49, 1, 1),                        // store
		packet(0x52, 1<<1|1<<2, 2),
		packet(0x98, 4, 2),
		packet(0xb2, 0x00ff800011112222, 8),
		[]byte{1},          // end
		packet(0x4a, 1, 1), // branch
		packet(0xb1, 0x400200, 8),
		packet(0x71, 7000, 8),
		[]byte{0x20, 0xb4}, binary.LittleEndian.AppendUint64(nil, 9), // extended header: an address of a kind to come
		packet(0x49, 0, 1),
		packet(0xb2, 0x7f0033334444, 8),
		packet(0x43, 0xe, 1),
		packet(0x71, 8000, 8),
	)
	w := &pt.Writer{Events: []pt.Event{{Name: "arm_spe_0//", Attr: attr(pt.Identifier | pt.IP | pt.TID | pt.Time | pt.CPU | pt.DataSrc), IDs: []uint64{1}}}}
	w.Record(70, 0, w.U64(w.U32(nil, 4, 0), 0, 0), nil) // AUXTRACE_INFO: SPE
	w.Record(79, 0, w.U64(nil, 1, 3, 1000), nil)        // TIME_CONV: shift, mult, zero
	w.Record(71, 0, append(w.U64(nil, uint64(len(trace)), 0, 0), w.U32(nil, 0, 4001, 6, 0)...), trace)
	return w
}

func TestSPE(t *testing.T) {
	f, err := perfdata.Parse("spe", speFile().File())
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, f, 1)
	source := func(op, level, num, remote uint64) perfdata.DataSrc {
		return perfdata.DataSrc(op | level<<5 | num<<33 | remote<<37)
	}
	want := []perfdata.Sample{
		{Mode: 1, PID: 4001, TID: 4001, CPU: 6, IP: 0xffff800008001234, Addr: 0xffff800011112222, Period: 1, Latency: 4,
			Source: source(perfdata.OpStore, perfdata.LevelL1|perfdata.LevelHit, perfdata.NumL1, 0)},
		{Mode: 2, PID: 4001, TID: 77, CPU: 6, Time: 1000 + 2500*3, IP: 0x400100, Addr: 0x7f0011112222, Phys: 0x2_1234_5678, Period: 1, Latency: 321, Issue: 21,
			Source: source(perfdata.OpLoad, 0, perfdata.NumAnyCache, 1)},
		{Mode: 2, PID: 4001, TID: 4001, CPU: 6, Time: 1000 + 4000*3, Addr: 0x7f0033334444, Period: 1,
			Source: source(perfdata.OpLoad, 0, perfdata.NumRAM, 0)},
	}
	if d := cmp.Diff(want, got, ignore); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
