package lab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// heard is a listener that writes down what it is told.
type heard struct{ strings.Builder }

func (h *heard) begin(run int) { fmt.Fprintf(h, "begin %d\n", run) }
func (h *heard) output(stderr bool, data []byte) error {
	fmt.Fprintf(h, "out %v %s\n", stderr, data)
	return nil
}
func (h *heard) summary(data []byte) { fmt.Fprintf(h, "summary %s\n", data) }
func (h *heard) ended(e exit)        { fmt.Fprintf(h, "ended %d %v %d\n", e.status(), e.took, e.oomKills) }
func (h *heard) entry(e entry) error {
	fmt.Fprintf(h, "entry %c %o %d %s %s\n", e.kind, e.mode, e.size, e.path, e.target)
	return nil
}
func (h *heard) content(b []byte) error { fmt.Fprintf(h, "content %s\n", b); return nil }
func (h *heard) log(text string)        { fmt.Fprintf(h, "log %s\n", text) }

func frame(kind byte, payload string) []byte {
	b := append([]byte{kind}, binary.BigEndian.AppendUint32(nil, uint32(len(payload)))...)
	return append(b, payload...)
}

func TestAttend(t *testing.T) {
	in := bytes.Join([][]byte{
		frame('b', "0"), frame('o', "hello"), frame('e', "oh"), frame('m', "{}"), frame('s', "256 1500000 2"),
		frame('f', "f 644 5 3 /home/a b\x00"), frame('d', "abc"), frame('f', "l 777 5 0 /x\x00target\x00"), frame('z', ""),
	}, nil)
	var h heard
	if err := attend(bytes.NewReader(in), &h); err != nil {
		t.Fatal(err)
	}
	want := `begin 0
out false hello
out true oh
summary {}
ended 1 1.5s 2
entry f 644 3 /home/a b 
content abc
entry l 777 0 /x target
`
	if h.String() != want {
		t.Errorf("heard\n%swant\n%s", h.String(), want)
	}
}

func TestAttendErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []byte
		err  string
	}{
		{"end", nil, "went away"},
		{"half a frame", frame('o', "hello")[:7], "went away"},
		{"fatal", frame('X', "no disk"), "guest: no disk"},
		{"unknown kind", frame('?', ""), "unknown kind"},
		{"status", frame('s', "x"), "status"},
		{"run", frame('b', "x"), "began run"},
		{"huge", []byte{'o', 0xff, 0xff, 0xff, 0xff}, "frame of"},
		{"relative path", frame('f', "f 644 5 3 etc/passwd\x00"), "sent back"},
		{"negative size", frame('f', "f 644 5 -3 /etc\x00"), "sent back"},
	} {
		err := attend(bytes.NewReader(c.in), &heard{})
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
	}
}

func FuzzAttend(f *testing.F) {
	f.Add(bytes.Join([][]byte{frame('b', "0"), frame('f', "f 644 5 3 /a\x00"), frame('d', "abc"), frame('z', "")}, nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		attend(bytes.NewReader(in), &heard{}) // must return
	})
}
