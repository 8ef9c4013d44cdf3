package record

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"numaopt/internal/arena"
)

// keep is how many arenas of ended processes stay open; of more, only those
// with the most accesses do.
const keep = 8

// endMessage is what drain sends; processes send other texts with their arenas.
const endMessage = "end"

// inbox receives the arenas of processes as they start.
type inbox struct {
	conn *net.UnixConn
	done chan struct{}

	mu        sync.Mutex
	processes []*Process
	pids      map[int]bool // of all processes ever
	lost      uint64       // accesses of processes that were let go
}

func listen(path string) (*inbox, error) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	in := &inbox{conn: conn, done: make(chan struct{}), pids: map[int]bool{}}
	go in.receive()
	return in, nil
}

// receive takes arenas until the message "end", the connection's deadline or end.
func (in *inbox) receive() {
	defer close(in.done)
	text, control := make([]byte, 64), make([]byte, syscall.CmsgSpace(4))
	for {
		bytes, n, _, _, err := in.conn.ReadMsgUnix(text, control)
		if err != nil || string(text[:bytes]) == endMessage {
			return
		}
		messages, err := syscall.ParseSocketControlMessage(control[:n])
		if err != nil {
			continue
		}
		for i := range messages {
			fds, err := syscall.ParseUnixRights(&messages[i])
			if err != nil {
				continue
			}
			for _, fd := range fds {
				syscall.CloseOnExec(fd)
				in.add(os.NewFile(uintptr(fd), "arena"))
			}
		}
	}
}

func (in *inbox) add(f *os.File) {
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return
	}
	p := &Process{File: arena.File{File: f}, Size: st.Size()}
	if a, err := p.Open(); err == nil {
		p.PID = a.PID
	}
	in.mu.Lock()
	in.processes = append(in.processes, p)
	in.pids[p.PID] = true
	in.mu.Unlock()
}

// Open reads the arena's header as it is now.
func (p *Process) Open() (*arena.Arena, error) { return arena.Open(p.File, p.Size) }

// Accesses is what the process has made so far.
func (p *Process) Accesses() uint64 {
	a, err := p.Open()
	if err != nil {
		return 0
	}
	n, err := a.Accesses()
	if err != nil {
		return 0
	}
	return n
}

// ended reports whether the image is over: exited, replaced, or killed.
func (p *Process) ended() bool {
	a, err := p.Open()
	return err != nil || a.Flags&(arena.Exited|arena.Execed) != 0 || syscall.Kill(p.PID, 0) == syscall.ESRCH
}

// drain takes what was sent before the program ended: messages keep their order.
func (in *inbox) drain() {
	in.conn.SetReadDeadline(time.Now().Add(time.Second)) //nolint:errcheck // a closed connection reads no more either
	if self, err := net.DialUnix("unixgram", nil, in.conn.LocalAddr().(*net.UnixAddr)); err == nil {
		self.Write([]byte(endMessage)) //nolint:errcheck // the deadline ends the reader, too
		self.Close()
	}
	<-in.done
}

// condense lets the arenas go of ended processes that cannot be the one with
// the most accesses, so that a program of thousands of processes fits memory.
func (in *inbox) condense() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.processes) <= 2*keep {
		return
	}
	var most uint64
	counts := make([]uint64, len(in.processes))
	for i, p := range in.processes {
		counts[i] = p.Accesses()
		most = max(most, counts[i])
	}
	kept := in.processes[:0]
	for i, p := range in.processes {
		if counts[i] < most && p.ended() {
			in.lost += counts[i]
			p.File.Close()
			continue
		}
		kept = append(kept, p)
	}
	in.processes = kept
}

func (in *inbox) accesses() uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := in.lost
	for _, p := range in.processes {
		n += p.Accesses()
	}
	return n
}

// take hands over the arenas.
func (in *inbox) take() ([]*Process, int, uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.processes
	in.processes = nil
	return p, len(in.pids), in.lost
}

func (in *inbox) close() { in.conn.Close() }
