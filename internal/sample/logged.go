package sample

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/eventlog"
	"numaopt/internal/runfile"
)

// logs reads what the runtime wrote down of the processes: homes, objects, loops. Those
// that heirs has a parent of were forked and run its program.
func (r *reader) logs(pids []uint32, heirs map[uint32]uint32) (map[uint32]*eventlog.History, error) {
	out := map[uint32]*eventlog.History{}
	if r.opt.Log == "" {
		return out, nil
	}
	for _, pid := range pids {
		l, err := eventlog.Open(r.opt.Log, int(pid))
		bad := (*eventlog.FormatError)(nil)
		switch {
		case errors.Is(err, fs.ErrNotExist): // a process without the runtime
			continue
		case errors.As(err, &bad):
			r.stats.NoLog = bad.Error()
			continue
		case err != nil:
			return nil, err
		}
		h, err := l.Read()
		l.Close()
		if err != nil {
			return nil, err
		}
		r.stats.LogLost += l.Lost
		r.stats.SmallLost += l.SmallLost
		if l.Lost > 0 && l.Why != "" {
			r.stats.LogEnd = l.Why
		}
		out[pid] = h
	}
	r.unlogged(out, heirs)
	inherit(out)
	return out, nil
}

// unlogged adds forked processes that had nothing to tell: they are heirs of the last
// one before them that had.
func (r *reader) unlogged(logs map[uint32]*eventlog.History, heirs map[uint32]uint32) {
	found := map[uint32]*eventlog.History{}
	for pid := range heirs {
		child := pid
		for depth := 0; depth < 64 && logs[child] == nil; depth++ {
			parent, ok := heirs[child]
			if !ok {
				break
			}
			if logs[parent] != nil {
				found[pid] = eventlog.Heir(int(parent), r.born[thread{child, child}])
				break
			}
			child = parent
		}
	}
	maps.Copy(logs, found)
}

// inherit gives forked processes what their parents had, the elder ones first: a parent
// has its own parent's by then.
func inherit(logs map[uint32]*eventlog.History) {
	pids := slices.Collect(maps.Keys(logs))
	slices.SortFunc(pids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(logs[a].Forked, logs[b].Forked), cmp.Compare(a, b))
	})
	for _, pid := range pids {
		h := logs[pid]
		h.Inherit(logs[uint32(h.Parent)])
	}
}

// codeAt is the code at an address of the process.
func (s *space) codeAt(addr uint64) arena.Code {
	if p := s.at(addr, eventlog.Always); p != nil && p.module >= 0 {
		return arena.Code{VAddr: addr - s.modules[p.module].Base, Module: int(p.module)}
	}
	return arena.Code{VAddr: addr, Module: -1}
}

// runtimeAt is where the runtime's code is: as the log has it, else as it is mapped. A log
// that could not be written has nothing.
func (s *space) runtimeAt() [2]uint64 {
	if s.log != nil && s.log.Tracker[1] != 0 {
		return s.log.Tracker
	}
	for i := range s.modules {
		if m := &s.modules[i]; filepath.Base(m.Path) == runfile.Runtime {
			return [2]uint64{m.Lo, m.Hi}
		}
	}
	return [2]uint64{}
}

// missing is what to say of a process that has the runtime but no log; "" for others.
func (r *reader) missing(pid uint32, s *space) string {
	if r.opt.Log == "" || s.log != nil || s.runtime[1] == 0 || !r.kept(pid) {
		return ""
	}
	return fmt.Sprintf("the runtime's log of process %d could not be written: heap objects are known as mappings only, and loops by their functions", pid)
}

// own reports whether an access is not the program's: it is by the runtime's code, or
// to its log.
func (s *space) own(pc, addr uint64) bool {
	if s == nil {
		return false
	}
	return pc >= s.runtime[0] && pc < s.runtime[1] || addr >= s.logAt[0] && addr < s.logAt[1]
}

// ranks is one more than the highest rank that the log knows.
func (s *space) ranks() int {
	if s.log == nil {
		return 0
	}
	return s.log.Ranks()
}

// rankOf is the rank of a thread, and whether the program chose its CPU.
func (s *space) rankOf(pid int, tid uint32) (rank int, pinned, known bool) {
	if s.log == nil {
		return 0, false, false
	}
	t := s.log.Thread(tid)
	switch {
	case t != nil && t.Rank >= 0:
		return t.Rank, t.Pinned, true
	case int(tid) == pid && s.log.Parent != 0: // it went on in a forked process
		return 0, false, true
	}
	return 0, false, false
}

// homeKey is a page of an object.
type homeKey struct {
	page   uint64
	object int32
}

// asked is the nodes that the kernel named for pages: its last word on each.
func (s *space) asked() map[homeKey]int8 {
	out := map[homeKey]int8{}
	if s.log == nil {
		return out
	}
	s.log.EachHome(func(time, page uint64, node int) {
		object, _ := s.heap.at(page, time)
		out[homeKey{page, object}] = int8(node)
	})
	return out
}

// placed reports whether the program itself chose the home of a page: by its place, or
// because a thread with a memory policy touched it first. Who that was is only known of
// page faults. Else it is taken to be so where most samples are of threads that had a
// policy while the object was there: a thread that has one only for a part of that time
// may have touched the page outside of it.
func (t *Table) placed(p *page) bool {
	log := t.space.log
	if log == nil || !log.Places() {
		return false
	}
	from, to := uint64(0), uint64(eventlog.Always)
	if p.object > 0 && int(p.object) < len(log.Objects) {
		from, to = log.Objects[p.object].From, log.Objects[p.object].To
	}
	if log.Placed(p.number, from, to) {
		return true
	}
	if f := p.fault; f != nil {
		return log.Prefers(f.tid, f.time, f.time+1)
	}
	own, all := uint64(0), uint64(0)
	for i := range p.cells {
		c := &p.cells[i]
		all += uint64(c.samples)
		if log.Prefers(c.tid, from, to) {
			own += uint64(c.samples)
		}
	}
	return 2*own > all
}
