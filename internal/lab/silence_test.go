package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestPatient(t *testing.T) {
	const limit = 120 * time.Millisecond
	for _, c := range []struct {
		name string
		say  func(io.Writer) // and then nothing, or the end
		err  error
	}{
		{"nothing at all", func(io.Writer) {}, errSilent},
		{"silent after a while", func(w io.Writer) { w.Write(frame('b', "0")) }, errSilent},
		{"half a frame", func(w io.Writer) { w.Write(frame('o', "hello")[:7]) }, errSilent},
		{"slow, but there", func(w io.Writer) {
			for range 10 {
				time.Sleep(limit / 2)
				w.Write(frame('h', ""))
			}
			w.Write(frame('z', ""))
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			guest, host := net.Pipe()
			defer host.Close()
			go c.say(guest)
			err := attend(&patient{conn: host, boot: limit, run: limit}, &heard{})
			if !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
		})
	}
}

func TestBootTwice(t *testing.T) {
	j := &job{runs: []guestRun{{name: "default"}, {name: "interleave"}}}
	for _, c := range []struct {
		name  string
		boots []error // what each boot ends with
		wrote bool
		err   string
	}{
		{"well", []error{nil}, false, ""},
		{"well at second", []error{errSilent, nil}, false, ""},
		{"silent twice", []error{errSilent, errSilent}, false, "in run default, twice"},
		{"another error is not repeated", []error{errQEMU}, false, "QEMU ended"},
		{"files are not written twice", []error{errSilent}, true, "not all of it is there"},
	} {
		var said []string
		opt := Options{Warn: func(s string) { said = append(said, s) }, Progress: func(string) {}}
		n := 0
		w, err := bootTwice(opt, j, func(w *watcher) error {
			w.begin(0)
			if c.wrote {
				w.written++
			}
			n++
			return c.boots[n-1]
		})
		if n != len(c.boots) || len(said) != n-1 {
			t.Errorf("%s: %d boots, said %q", c.name, n, said)
		}
		if text := fmt.Sprint(err); err == nil && c.err != "" || !strings.Contains(text, c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
		if err == nil && (w.again != "") != (n == 2) {
			t.Errorf("%s: the result's warning is %q", c.name, w.again)
		}
	}
}

// A guest that stops is given up and booted once more; the runs are whole.
func TestSilentGuest(t *testing.T) {
	opt := boots(t, "2x1")
	opt.silence = 12 * time.Second
	opt.Command = []string{"echo", "here"}
	var said []string
	opt.Warn = func(text string) { said = append(said, text) }
	stopped := false
	opt.Progress = func(text string) {
		if strings.HasPrefix(text, "run 1 ") && !stopped {
			stopped = stopQEMU(t)
		}
	}
	r, err := Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "stopped responding in run default: booting it once more") {
		t.Errorf("said %q", said)
	}
	if out := opt.Stdout.(*bytes.Buffer).String(); out != "here\n" || len(r.Runs) != 2 || len(r.Warnings) != 1 {
		t.Errorf("output %q, result %+v", out, r)
	}
}

// stopQEMU stops the QEMU that this process started.
func stopQEMU(t *testing.T) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		var pid, parent int
		var name, state string
		if _, err := fmt.Sscan(string(text), &pid, &name, &state, &parent); err == nil && parent == os.Getpid() && strings.HasPrefix(name, "(qemu-system") {
			return syscall.Kill(pid, syscall.SIGSTOP) == nil
		}
	}
	t.Error("no QEMU of this process")
	return false
}
