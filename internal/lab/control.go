package lab

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Frame kinds of the guest's reports; runtime-c/guest/guest.h.
const (
	frameLog     = 'L'
	frameFatal   = 'X'
	frameBegin   = 'b'
	frameOut     = 'o'
	frameErr     = 'e'
	frameStatus  = 's'
	frameSummary = 'm'
	frameEntry   = 'f'
	frameData    = 'd'
	frameBeat    = 'h'
	frameDone    = 'z'
)

const maxFrame = 1 << 20

// exit is how a run ended.
type exit struct {
	wait     uint32 // wait status
	took     time.Duration
	oomKills int
}

// status is the exit status as a shell gives it: 128 and the signal's number for a
// program that was killed.
func (e exit) status() int {
	if sig := e.wait & 0x7f; sig != 0 {
		return 128 + int(sig)
	}
	return int(e.wait >> 8 & 0xff)
}

// listener is told what the guest reports.
type listener interface {
	begin(run int)
	output(stderr bool, data []byte) error
	summary(data []byte)
	ended(e exit)
	entry(e entry) error    // a file that the last run changed
	content(b []byte) error // the next bytes of the last entry
	log(text string)
}

// errGuest is a failure that the guest reports.
type errGuest string

func (e errGuest) Error() string { return "guest: " + string(e) }

// attend reads the guest's reports until it is done.
func attend(conn io.Reader, l listener) error {
	in := bufio.NewReaderSize(conn, 1<<16)
	for {
		var head [5]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return away(err)
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n > maxFrame {
			return fmt.Errorf("the guest sent a frame of %d bytes", n)
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(in, payload); err != nil {
			return away(err)
		}
		done, err := dispatch(head[0], payload, l)
		if done || err != nil {
			return err
		}
	}
}

// away is what err of the connection says of the guest.
func away(err error) error {
	if errors.Is(err, errSilent) {
		return err
	}
	return fmt.Errorf("the guest went away: %w", err)
}

func dispatch(kind byte, payload []byte, l listener) (done bool, err error) {
	switch kind {
	case frameLog:
		l.log(string(payload))
	case frameFatal:
		return false, errGuest(payload)
	case frameBegin:
		k, err := strconv.Atoi(string(payload))
		if err != nil {
			return false, fmt.Errorf("the guest began run %q", payload)
		}
		l.begin(k)
	case frameOut, frameErr:
		return false, l.output(kind == frameErr, payload)
	case frameSummary:
		l.summary(payload)
	case frameStatus:
		var e exit
		var us int64
		if _, err := fmt.Sscan(string(payload), &e.wait, &us, &e.oomKills); err != nil {
			return false, fmt.Errorf("the guest reported a status of %q", payload)
		}
		e.took = time.Duration(us) * time.Microsecond
		l.ended(e)
	case frameEntry:
		e, err := parseEntry(payload)
		if err != nil {
			return false, err
		}
		return false, l.entry(e)
	case frameData:
		return false, l.content(payload)
	case frameBeat: // that it came is all it says
	case frameDone:
		return true, nil
	default:
		return false, fmt.Errorf("the guest sent a frame of unknown kind %q", kind)
	}
	return false, nil
}

// entry is one file that a run changed.
type entry struct {
	kind   byte // f file, d directory, D directory in the place of another, l symbolic link, w deleted
	mode   uint32
	mtime  time.Time
	size   int64
	path   string // absolute
	target string // of a link
}

func parseEntry(payload []byte) (entry, error) {
	head, target, _ := strings.Cut(string(payload), "\x00")
	part := strings.SplitN(head, " ", 5)
	if len(part) != 5 || len(part[0]) != 1 || !strings.HasPrefix(part[4], "/") {
		return entry{}, fmt.Errorf("the guest sent back %q", head)
	}
	mode, err1 := strconv.ParseUint(part[1], 8, 32)
	mtime, err2 := strconv.ParseInt(part[2], 10, 64)
	size, err3 := strconv.ParseInt(part[3], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || size < 0 {
		return entry{}, fmt.Errorf("the guest sent back %q", head)
	}
	return entry{
		kind: part[0][0], mode: uint32(mode), mtime: time.Unix(0, mtime), size: size,
		path: part[4], target: strings.TrimRight(target, "\x00"),
	}, nil
}
