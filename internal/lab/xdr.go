package lab

import (
	"encoding/binary"
	"errors"
)

// errXDR says that a message ended before its content did.
var errXDR = errors.New("short XDR message")

// xdrReader takes the items of an XDR message (RFC 4506) off its front. After
// the first item that is not there, err is set and all items are zero.
type xdrReader struct {
	rest []byte
	err  error
}

func (r *xdrReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.err, r.rest = errXDR, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *xdrReader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *xdrReader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// opaque is a variable-length item, in the reader's own memory.
func (r *xdrReader) opaque() []byte {
	n := int(r.uint32())
	b := r.take(n)
	r.take(-n & 3)
	return b
}

// xdrWriter appends the items of an XDR message.
type xdrWriter struct{ b []byte }

func (w *xdrWriter) uint32(v uint32) { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *xdrWriter) uint64(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

func (w *xdrWriter) bool(v bool) {
	if v {
		w.uint32(1)
	} else {
		w.uint32(0)
	}
}

func (w *xdrWriter) opaque(b []byte) {
	w.uint32(uint32(len(b)))
	w.b = append(w.b, b...)
	w.b = append(w.b, make([]byte, -len(b)&3)...)
}

func (w *xdrWriter) string(s string) { w.opaque([]byte(s)) }
