package perfdata

import "math"

// streamHeader reads what a file has in its header from the records of a stream:
// perf writes HEADER_ATTR, FEATURE and EVENT_UPDATE before the samples.
func (f *File) streamHeader() error {
	b := f.streams[0].data
	for len(b) > 0 {
		r, rest, err := f.next(b)
		if err == errCut {
			return nil
		}
		if err != nil {
			return err
		}
		switch r.kind {
		case recAttr:
			if err := f.streamAttr(r.body); err != nil {
				return err
			}
		case recFeature:
			if len(r.body) >= 8 {
				if bit := f.order.u64(r.body); bit < math.MaxInt32 {
					f.feature(int(bit), r.body[8:])
				}
			}
		case recEventUpdate:
			f.eventUpdate(r.body)
		case recSample, recCompressed, recCompressed2:
			return nil
		}
		b = rest
	}
	return nil
}

// streamAttr reads HEADER_ATTR: an attr, as long as it says itself, and ids.
func (f *File) streamAttr(b []byte) error {
	n := len(b)
	if len(b) >= attrMin {
		if size := f.order.u32(b[4:]); size >= attrMin && int64(size) <= int64(len(b)) {
			n = int(size)
		}
	}
	a, err := parseAttr(b[:n], f.order)
	if err != nil {
		return err
	}
	f.addEvent(a, f.words(b[n:]))
	return nil
}

// eventUpdate reads the name of an event: type 2 of EVENT_UPDATE.
func (f *File) eventUpdate(b []byte) {
	const name = 2
	if len(b) < 16 || f.order.u64(b) != name {
		return
	}
	id := f.order.u64(b[8:])
	for i := range f.Events {
		for _, have := range f.Events[i].IDs {
			if have == id {
				f.Events[i].Name = cString(b[16:])
			}
		}
	}
}
