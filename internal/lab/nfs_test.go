package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"encoding/binary"
	"io"
)

// client speaks NFS to a share, as the guest's kernel does.
type client struct {
	t    *testing.T
	conn net.Conn
	xid  uint32
}

func newClient(t *testing.T) *client {
	s, err := newShare()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	go s.serve(theirs)
	t.Cleanup(func() { ours.Close(); s.close() })
	return &client{t: t, conn: ours}
}

// call carries out one procedure and returns its results.
func (c *client) call(prog, proc uint32, args func(*xdrWriter)) *xdrReader {
	c.t.Helper()
	c.xid++
	w := &xdrWriter{b: make([]byte, 4)}
	for _, v := range []uint32{c.xid, 0, 2, prog, 3, proc, 0, 0, 0, 0} {
		w.uint32(v)
	}
	if args != nil {
		args(w)
	}
	binary.BigEndian.PutUint32(w.b, uint32(len(w.b)-4)|1<<31)
	if _, err := c.conn.Write(w.b); err != nil {
		c.t.Fatal(err)
	}
	var head [4]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		c.t.Fatal(err)
	}
	reply := make([]byte, binary.BigEndian.Uint32(head[:])&^(1<<31))
	if _, err := io.ReadFull(c.conn, reply); err != nil {
		c.t.Fatal(err)
	}
	r := &xdrReader{rest: reply}
	if xid, kind, state := r.uint32(), r.uint32(), r.uint32(); xid != c.xid || kind != 1 || state != 0 {
		c.t.Fatalf("reply %d %d %d", xid, kind, state)
	}
	r.uint32()
	r.uint32()
	if status := r.uint32(); status != 0 {
		c.t.Fatalf("procedure %d of %d: RPC status %d", proc, prog, status)
	}
	return r
}

// find looks a path up from the root and returns its handle.
func (c *client) find(path string) ([]byte, uint32) {
	r := c.call(progMount, 1, func(w *xdrWriter) { w.string("/") })
	r.uint32()
	h := r.opaque()
	for _, name := range strings.Split(strings.Trim(path, "/"), "/") {
		r = c.call(progNFS, 3, func(w *xdrWriter) { w.opaque(h); w.string(name) })
		if status := r.uint32(); status != 0 {
			return nil, status
		}
		h = r.opaque()
	}
	return h, 0
}

// skipAttr takes a post_op_attr.
func skipAttr(r *xdrReader) {
	if r.uint32() == 1 {
		r.take(84)
	}
}

func TestShare(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789", 10000)
	os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o640)
	os.Symlink("file", filepath.Join(dir, "link"))
	c := newClient(t)

	h, status := c.find(filepath.Join(dir, "file"))
	if status != 0 {
		t.Fatalf("lookup: status %d", status)
	}
	r := c.call(progNFS, 1, func(w *xdrWriter) { w.opaque(h) })
	if status, kind, mode := r.uint32(), r.uint32(), r.uint32(); status != 0 || kind != 1 || mode != 0o640 {
		t.Errorf("getattr: %d, type %d, mode %o", status, kind, mode)
	}
	r = c.call(progNFS, 6, func(w *xdrWriter) { w.opaque(h); w.uint64(99990); w.uint32(4096) })
	if status := r.uint32(); status != 0 {
		t.Fatalf("read: status %d", status)
	}
	skipAttr(r)
	if count, eof, data := r.uint32(), r.uint32(), r.opaque(); count != 10 || eof != 1 || string(data) != text[99990:] {
		t.Errorf("read: %d bytes, eof %d, %q", count, eof, data)
	}
	r = c.call(progNFS, 4, func(w *xdrWriter) { w.opaque(h); w.uint32(accessRead | accessExec) })
	r.uint32()
	skipAttr(r)
	if granted := r.uint32(); granted != accessRead {
		t.Errorf("access: %#x", granted)
	}
	link, _ := c.find(filepath.Join(dir, "link"))
	r = c.call(progNFS, 5, func(w *xdrWriter) { w.opaque(link) })
	r.uint32()
	skipAttr(r)
	if target := string(r.opaque()); target != "file" {
		t.Errorf("readlink: %q", target)
	}
	if _, status := c.find(filepath.Join(dir, "nothing")); status != nfsNoEnt {
		t.Errorf("lookup of nothing: status %d", status)
	}
	r = c.call(progNFS, 7, func(w *xdrWriter) { w.opaque(h); w.uint64(0); w.uint32(1); w.uint32(0); w.string("x") })
	if status := r.uint32(); status != nfsROFS {
		t.Errorf("write: status %d", status)
	}
	r = c.call(progNFS, 1, func(w *xdrWriter) { w.opaque([]byte("nonsense")) })
	if status := r.uint32(); status != nfsStale {
		t.Errorf("a handle never given out: status %d", status)
	}
	r = c.call(progACL, 1, func(w *xdrWriter) { w.opaque(h); w.uint32(3) })
	r.uint32()
	skipAttr(r)
	if mask, n := r.uint32(), r.uint32(); mask != 3 || n != 0 || len(r.rest) != 12 {
		t.Errorf("getacl: mask %d, %d entries, %d bytes more", mask, n, len(r.rest))
	}
}

// A listing that does not fit one reply goes on where it was.
func TestShareLists(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		os.WriteFile(filepath.Join(dir, fmt.Sprintf("a-rather-long-name-of-a-file-%03d", i)), nil, 0o600)
	}
	c := newClient(t)
	h, _ := c.find(dir)
	seen := map[string]int{}
	replies := 0
	for cookie, done := uint64(0), uint32(0); done == 0; replies++ {
		r := c.call(progNFS, 17, func(w *xdrWriter) {
			w.opaque(h)
			w.uint64(cookie)
			w.uint64(0)
			w.uint32(4096)
			w.uint32(8192)
		})
		if status := r.uint32(); status != 0 {
			t.Fatalf("readdirplus: status %d", status)
		}
		skipAttr(r)
		r.uint64()
		for r.uint32() == 1 {
			r.uint64()
			seen[string(r.opaque())]++
			cookie = r.uint64()
			skipAttr(r)
			if r.uint32() == 1 {
				r.opaque()
			}
		}
		done = r.uint32()
		if r.err != nil || replies > 100 {
			t.Fatalf("after %d replies: %v", replies, r.err)
		}
	}
	if len(seen) != 202 || replies < 3 {
		t.Errorf("%d names in %d replies", len(seen), replies)
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is listed %d times", name, n)
		}
	}
}

// Whatever arrives, the share answers or hangs up.
func FuzzShare(f *testing.F) {
	w := &xdrWriter{}
	for _, v := range []uint32{1, 0, 2, progNFS, 3, 1, 0, 0, 0, 0} {
		w.uint32(v)
	}
	w.opaque(handleBytes(0))
	f.Add(w.b)
	f.Fuzz(func(t *testing.T, call []byte) {
		s, err := newShare()
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		s.answer(call)
	})
}
