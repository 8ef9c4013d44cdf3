package lab

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// The guest says something every few seconds as long as it is well and has the
// host's files (nmo_beat of runtime-c/guest/init.c), however long its program
// runs. One that says nothing for as long as this is not coming back: QEMU 7.2
// may go on with an instruction that the kernel has changed (commandLine).
const (
	bootSilence = 2 * time.Minute // until it has something to say at all
	runSilence  = time.Minute
)

// errSilent is a guest that stopped saying anything while its QEMU lives.
var errSilent = errors.New("the guest stopped responding")

// patient reads the guest's reports, and gives up with errSilent. Silence is
// waited for in parts, so that numaopt does not take its own sleep (a stopped
// job, a suspended machine) for the guest's.
type patient struct {
	conn  net.Conn
	boot  time.Duration
	run   time.Duration
	heard bool
}

const patientParts = 6

func (p *patient) Read(b []byte) (int, error) {
	limit := p.boot
	if p.heard {
		limit = p.run
	}
	for range patientParts {
		if err := p.conn.SetReadDeadline(time.Now().Add(limit / patientParts)); err != nil {
			return 0, err
		}
		n, err := p.conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			p.heard = p.heard || n > 0
			return n, err
		}
	}
	return 0, errSilent
}

var _ io.Reader = (*patient)(nil)
