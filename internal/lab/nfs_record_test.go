package lab

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

func TestRecord(t *testing.T) {
	part := func(last uint32, text string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, last<<31|uint32(len(text))), text...)
	}
	for _, c := range []struct {
		name, want string
		in         []byte
		err        error
	}{
		{"whole", "call", part(1, "call"), nil},
		{"fragments", "a call", bytes.Join([][]byte{part(0, "a "), part(0, ""), part(1, "call")}, nil), nil},
		{"cut", "", part(1, "call")[:6], io.ErrUnexpectedEOF},
		{"end", "", nil, io.EOF},
		{"long", "", []byte{0xff, 0xff, 0xff, 0xff}, errCall},
		{"long by fragments", "", append(part(0, string(make([]byte, maxRequest))), part(1, "x")...), errCall},
	} {
		got, err := record(bytes.NewReader(c.in))
		if !errors.Is(err, c.err) || err == nil && string(got) != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}
