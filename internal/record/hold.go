package record

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder is the name under which numaopt starts itself to become a program later.
const holder = "numaopt-hold"

// A holder runs here, as init is sure to run on the first thread of the process: perf
// follows that one, and it is this thread that becomes the program.
func init() {
	if len(os.Args) == 2 && os.Args[0] == holder {
		os.Exit(become(os.Args[1]))
	}
}

// image is what a holder becomes.
type image struct {
	Path      string
	Args, Env []string
}

// become waits on a socket for what to become, and for a byte, and becomes it. Where
// that fails the socket is told why; where the byte does not come, nobody wants the
// program any more.
func become(socket string) (status int) {
	fd, err := strconv.Atoi(socket)
	if err != nil {
		return exitHolder
	}
	unix.CloseOnExec(fd)
	numaopt := os.NewFile(uintptr(fd), "numaopt")
	in := bufio.NewReader(numaopt)
	var p image
	if gob.NewDecoder(in).Decode(&p) != nil {
		return exitHolder
	}
	if _, err := in.ReadByte(); err != nil {
		return exitHolder
	}
	err = syscall.Exec(p.Path, p.Args, p.Env)
	fmt.Fprintf(numaopt, "%s: %v", p.Path, err)
	return exitHolder
}

// exitHolder is the status of a holder that did not become a program.
const exitHolder = 127

// held is a program that is held before its first instruction, so that perf can be
// attached to it: were perf to start it, it would have perf's environment, descriptors
// and signals, and end with perf.
type held struct {
	pid    int
	socket *os.File
	ended  chan ending
}

// ending is how a program ended: with a status, as Wait has it, or an error.
type ending struct {
	status int
	err    error
}

// hold starts a holder of the command, which gets signals as the program will. The
// calling thread is to live as long as it.
func hold(ctx context.Context, opt *PerfOptions) (*held, error) {
	path, err := Resolve(opt.Command[0])
	if path == "" {
		return nil, err
	}
	p := image{path, opt.Command, opt.Env}
	if p.Env == nil {
		p.Env = os.Environ()
	}
	mine, its, err := socketPair()
	if err != nil {
		return nil, err
	}
	h := &held{socket: mine, ended: make(chan ending, 1)}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{holder, strconv.Itoa(int(its.Fd()))}
	cmd.Env = []string{} // the program's would act on the holder: its libraries are loaded once
	cmd.Stdin, cmd.Stdout, cmd.Stderr = opt.Stdin, opt.Stdout, opt.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // as an emulated program ends with numaopt
	// The socket keeps its number: a lower one may be a file that a shell has opened
	// for the program.
	_, err = unix.FcntlInt(its.Fd(), unix.F_SETFD, 0)
	if err == nil {
		err = cmd.Start()
	}
	its.Close()
	if err != nil {
		mine.Close()
		return nil, err
	}
	h.pid = cmd.Process.Pid
	go func() {
		status, err := Wait(ctx, cmd, func() {})
		h.ended <- ending{status, err}
	}()
	gob.NewEncoder(h.socket).Encode(p) //nolint:errcheck // a holder that was ended meanwhile is waited for
	return h, nil
}

// release lets the program run. An error means that it cannot be executed.
func (h *held) release() error {
	defer h.socket.Close()
	h.socket.Write([]byte{0}) //nolint:errcheck // as in hold
	// The program itself has no socket: this returns once it is there.
	if why, _ := io.ReadAll(h.socket); len(why) > 0 {
		<-h.ended
		return errors.New(string(why))
	}
	return nil
}

// abandon ends the holder. A signal may have ended it before.
func (h *held) abandon() ending {
	h.socket.Close()
	return <-h.ended
}

// socketPair makes two sockets that are connected, for this process and for one that
// it starts.
func socketPair() (mine, its *os.File, err error) {
	fd, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd[0]), "socket"), os.NewFile(uintptr(fd[1]), "socket"), nil
}
