package perfdata

import "encoding/hex"

// Side is a record other than a sample: one of *Mmap, *Comm, *Task, *Lost,
// *Throttle, *Aux.
type Side any

// Mmap is a mapping that a process made, or had when recording began.
type Mmap struct {
	PID, TID   uint32
	Time       uint64
	Addr, Len  uint64
	Offset     uint64 // into the file, bytes
	Name       string
	BuildID    string // hexadecimal; "" where the record does not say
	Executable bool
	Kernel     bool
}

// Comm is the name that a thread took; Exec if the process became another program.
type Comm struct {
	PID, TID uint32
	Time     uint64
	Name     string
	Exec     bool
}

// Task is a thread's or a process's beginning or end.
type Task struct {
	PID, TID       uint32
	Parent, Thread uint32 // process and thread that made it
	Time           uint64
	Exit           bool
}

// Lost is samples or records that the kernel could not store.
type Lost struct {
	Time    uint64
	Event   int // index into File.Events; -1 where not known
	Count   uint64
	Samples bool // Count is of samples; else of records of any kind
}

// Throttle is an event that the kernel stopped (On) since it took too much time,
// or let go again.
type Throttle struct {
	Time  uint64
	Event int
	On    bool
}

// Aux is a piece of a trace (Arm SPE); Truncated if some of it was lost.
type Aux struct {
	Time      uint64
	Size      uint64
	Truncated bool
}

// Side calls visit with every record that is no sample and that a reader of
// samples needs, in the order of the file, which is not that of time.
func (f *File) Side(visit func(Side) error) error {
	for _, s := range f.listedSide {
		if err := visit(s); err != nil {
			return err
		}
	}
	for i := range f.streams {
		if err := f.others(&f.streams[i], func(r *record) error {
			if r.kind == recSample {
				return nil
			}
			if f.streams[i].packed { // the index saw no further than what is not compressed
				if err := f.meet(r); err != nil {
					return err
				}
			}
			if s := f.side(r); s != nil {
				return visit(s)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// isSide is whether side reads records of a kind.
func isSide(kind uint32) bool {
	switch kind {
	case recMmap, recMmap2, recComm, recFork, recExit, recLost, recLostSamples, recThrottle, recUnthrottle, recAux:
		return true
	}
	return false
}

// side reads one record; nil for a kind that is not asked for, or too short.
func (f *File) side(r *record) Side {
	o, b := f.order, r.body
	t := f.sideTime(b)
	switch r.kind {
	case recMmap, recMmap2:
		return f.mmap(r, t)
	case recComm:
		if len(b) < 8 {
			return nil
		}
		return &Comm{PID: o.u32(b), TID: o.u32(b[4:]), Time: t, Name: cString(f.withoutTrailer(b)[8:]), Exec: r.misc&miscCommExec != 0}
	case recFork, recExit:
		if len(b) < 24 {
			return nil
		}
		return &Task{PID: o.u32(b), Parent: o.u32(b[4:]), TID: o.u32(b[8:]), Thread: o.u32(b[12:]), Time: o.u64(b[16:]), Exit: r.kind == recExit}
	case recLost:
		if len(b) < 16 {
			return nil
		}
		return &Lost{Time: t, Event: f.eventOf(o.u64(b)), Count: o.u64(b[8:])}
	case recLostSamples:
		if len(b) < 8 || r.misc&lostByFilter != 0 {
			return nil
		}
		return &Lost{Time: t, Event: -1, Count: o.u64(b), Samples: true}
	case recThrottle, recUnthrottle:
		if len(b) < 24 {
			return nil
		}
		return &Throttle{Time: o.u64(b), Event: f.eventOf(o.u64(b[8:])), On: r.kind == recThrottle}
	case recAux:
		if len(b) < 24 {
			return nil
		}
		return &Aux{Time: t, Size: o.u64(b[8:]), Truncated: o.u64(b[16:])&auxTruncated != 0}
	}
	return nil
}

func (f *File) mmap(r *record, t uint64) Side {
	o, b := f.order, f.withoutTrailer(r.body)
	if len(b) < 32 {
		return nil
	}
	m := &Mmap{PID: o.u32(b), TID: o.u32(b[4:]), Time: t, Addr: o.u64(b[8:]), Len: o.u64(b[16:]), Offset: o.u64(b[24:]),
		Executable: r.misc&miscMmapData == 0, Kernel: r.misc&miscCPUMode == 1}
	if r.kind == recMmap {
		m.Name = cString(b[32:])
		return m
	}
	if len(b) < 64 {
		return nil
	}
	if n := int(b[32]); r.misc&miscMmapBuildID != 0 && n <= 20 {
		m.BuildID = hex.EncodeToString(b[36 : 36+n])
	}
	m.Executable = o.u32(b[56:])&4 != 0 // PROT_EXEC
	m.Name = cString(b[64:])
	return m
}

func (f *File) eventOf(id uint64) int {
	if e, ok := f.ids.event(id); ok {
		return e
	}
	if len(f.Events) == 1 {
		return 0
	}
	return -1
}
