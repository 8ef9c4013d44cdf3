package mitos

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/perfdata"
)

// Heads of files as versions of Mitos write them.
const (
	older = "source,line,instruction,bytes,ip,variable,buffer_size,dims,xidx,yidx,zidx,pid,tid,time,addr,cpu,latency,data_src\n"
	newer = "source,line,instruction,bytes,ip,variable,buffer_size,dims,xidx,yidx,zidx,pid,tid,time,addr,cpu,latency,level,hit_type,op_type,snoop_mode,tlb_access,numa\n"
)

func samples(t *testing.T, f *perfdata.File) []perfdata.Sample {
	t.Helper()
	var out []perfdata.Sample
	if err := f.Samples(2, func(int) func(*perfdata.Sample) error {
		return func(s *perfdata.Sample) error {
			out = append(out, perfdata.Sample{PID: s.PID, TID: s.TID, CPU: s.CPU, Time: s.Time, IP: s.IP, Addr: s.Addr, Latency: s.Latency, Source: s.Source})
			return nil
		}
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRead(t *testing.T) {
	remote := perfdata.DataSrc(perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelRemRAM1)<<5)
	first := perfdata.Sample{PID: 10, TID: 11, Time: 500, IP: 4198400, Addr: 8192, CPU: 3, Latency: 300, Source: remote}
	second := perfdata.Sample{PID: 10, TID: 10, Time: 600, IP: 4198404, Addr: 20480, CPU: 0, Latency: 7, Source: perfdata.OpStore | (perfdata.LevelHit|perfdata.LevelL1)<<5}
	for name, text := range map[string]string{
		"word": older + "a.c,12,mov,8,4198400,m_x,4096,1,0,0,0,10,11,500,8192,3,300,8450\n" + "??,??,??,??,4198404,m_x,4096,1,0,0,0,10,10,600,0x5000,0,7,0x144\n",
		"texts": newer + "a.c,12,mov,8,4198400,m_x,4096,1,0,0,0,10,11,500,8192,3,300,Remote RAM 1 Hop,Hit,Load,None,L1 Hit,1\n" +
			"??,??,??,??,4198404,m_x,4096,1,0,0,0,10,10,600,20480,0,7,L1,Hit,Store,Hit,L2 Miss,0\n",
	} {
		f, notes, err := Read(name, strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []perfdata.Sample{first, second}
		if name == "word" { // as it is in the file
			want[0].Source, want[1].Source = 8450, 0x144
		}
		if d := cmp.Diff(want, samples(t, f), cmp.AllowUnexported(perfdata.Sample{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		var side []perfdata.Side
		f.Side(func(s perfdata.Side) error { side = append(side, s); return nil }) //nolint:errcheck // it returns none
		if d := cmp.Diff([]perfdata.Side{&perfdata.Comm{PID: 10, TID: 10, Name: name}, &perfdata.Mmap{PID: 10, TID: 10, Addr: 8192, Len: 20480 - 8192 + 1, Name: "variable m_x"}}, side); d != "" {
			t.Errorf("%s, other records (-want +got):\n%s", name, d)
		}
		if len(notes) != 1 {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}

// TestBadLines: they are counted and named, and the others are read.
func TestBadLines(t *testing.T) {
	good := "a.c,12,mov,8,1,m_x,4096,1,0,0,0,10,11,500,8192,3,300,8450\n"
	text := older + good + strings.Replace(good, "8192", "zz", 1) + "a.c,12\n" + "\n" + good + strings.Repeat("x\n", 5)
	f, notes, err := Read("bad", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(samples(t, f)); n != 2 {
		t.Errorf("%d samples, want 2", n)
	}
	want := `7 of 9 lines are left out: line 3: addr is "zz"; line 4: it has no addr; line 7: it has no addr; line 8: it has no addr; line 9: it has no addr; and 2 more`
	if len(notes) != 2 || notes[1] != want {
		t.Errorf("notes\n%q, want\n%q", notes, want)
	}
}

// TestBadNumbers: what is too large for what it is of is the fault of its line alone, and
// so is a quote that nothing ends.
func TestBadNumbers(t *testing.T) {
	good := "a.c,12,mov,8,1,m_x,4096,1,0,0,0,10,11,500,8192,3,300,8450\n"
	text := older
	for _, c := range [][2]string{{"", ""}, {",3,300", ",4294967299,300"}, {",11,500", ",4294967307,500"}, {",10,11", ",4294967306,11"},
		{",300,", ",18446744073709551615,"}, {"a.c", "\"a.c"}, {"a.c", "\"a.c, b\""}} {
		text += strings.Replace(good, c[0], c[1], 1)
	}
	f, notes, err := Read("bad", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(samples(t, f)); n != 2 {
		t.Errorf("%d samples, want 2", n)
	}
	want := `5 of 7 lines are left out: line 3: cpu is "4294967299"; line 4: tid is "4294967307"; line 5: pid is "4294967306"; line 6: latency is "18446744073709551615"; line 7: it has no addr`
	if len(notes) != 2 || notes[1] != want {
		t.Errorf("notes\n%q, want\n%q", notes, want)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "first line"},
		{"MemAxes' first example", "variable,source,line,time,iter,latency,data_source,cpu,node,index,map3D,xidx,yidx,zidx\nm_x,a.cc,1,0,1,9,32,4,0,9,1,2,3,4\n", "no column addr, tid"},
		{"no samples", older, "no sample can be used"},
		{"bad ones only", older + "a.c\n", "no sample can be used: line 2: it has no addr"},
	} {
		if _, _, err := Read(c.name, strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestSource(t *testing.T) {
	for text, want := range map[string]perfdata.DataSrc{
		"Local RAM|Hit|Load|None":                                  perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelLocalRAM)<<5,
		"Remote_Cache_(2_hops)|Hit|Load|HitM":                      perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelRemCache2)<<5 | perfdata.SnoopHITM<<19,
		"|OP LOAD|LVL L3 hit|SNP None|TLB L1 or L2 hit|LCK No":     perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelL3)<<5,
		"|OP STORE|LVL L1 miss|SNP HitM|TLB L2 miss|LCK No|BLK  N": perfdata.OpStore | (perfdata.LevelMiss|perfdata.LevelL1)<<5 | perfdata.SnoopHITM<<19,
		"LFB|Hit|Load|": perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelLFB)<<5,
		"N/A|||":        0,
	} {
		if got := Source(text); got != want {
			t.Errorf("%q: %#x, want %#x", text, uint64(got), uint64(want))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(older + "a.c,12,mov,8,1,m_x,4096,1,0,0,0,10,11,500,8192,3,300,8450\n")
	f.Add(newer + "\"a,12\n")
	f.Fuzz(func(t *testing.T, text string) {
		if r, _, err := Read("fuzz", strings.NewReader(text)); err == nil {
			samples(t, r)
		}
	})
}
