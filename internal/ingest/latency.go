package ingest

import (
	"cmp"

	"numaopt/internal/arena"
	"numaopt/internal/profile"
	"numaopt/internal/sample"
	"numaopt/internal/units"
)

// Sampler is Counts that know more of single accesses than an emulated process's: how
// long they took, and which cache lines nodes share.
type Sampler interface {
	Counts
	EachLatency(do func(sample.Latency))
	EachLine(do func(sample.Line))
}

// latencies makes the histograms and the lines of a source that has them.
func (b *builder) latencies() error {
	if s, ok := b.a.(Sampler); ok {
		b.histograms(s)
		b.lines(s)
	}
	return nil
}

func (b *builder) histograms(s Sampler) {
	var list []profile.Latency
	s.EachLatency(func(l sample.Latency) {
		number := l.Page
		if l.Object > 0 {
			number = b.objs[l.Object].Addr / units.PageSize
		}
		object, _ := b.owners.find(arena.Page{Number: number, Object: l.Object})
		list = append(list, profile.Latency{Object: int32(object), Region: int32(b.region(l.Region)), Served: l.Served, From: l.From, To: l.To,
			Bucket: l.Bucket, Samples: l.Samples, Accesses: l.Accesses, Cycles: l.Cycles})
	})
	b.p.Latencies = profile.Merge(list, func(x, y profile.Latency) int {
		return cmp.Or(cmp.Compare(x.Object, y.Object), cmp.Compare(x.Region, y.Region), cmp.Compare(x.Served, y.Served),
			cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To), cmp.Compare(x.Bucket, y.Bucket))
	}, func(x, y *profile.Latency) {
		x.Samples += y.Samples
		x.Accesses += y.Accesses
		x.Cycles += y.Cycles
	})
}

func (b *builder) lines(s Sampler) {
	var list []profile.LineUse
	s.EachLine(func(l sample.Line) {
		addr := l.Number * profile.LineBytes
		object, index := b.owners.find(arena.Page{Number: addr / units.PageSize, Object: l.Object})
		if index < 0 {
			return
		}
		list = append(list, profile.LineUse{Object: int32(object), Offset: int64(index)*units.PageSize + int64(addr%units.PageSize),
			Node: l.Node, Region: int32(b.region(l.Region)), Place: int32(b.place(l.Code)),
			Written: l.Written, Read: l.Read, Loads: l.Loads, Stores: l.Stores, HITM: l.HITM})
	})
	b.p.Lines = profile.Merge(list, func(x, y profile.LineUse) int {
		return cmp.Or(cmp.Compare(x.Object, y.Object), cmp.Compare(x.Offset, y.Offset), cmp.Compare(x.Node, y.Node),
			cmp.Compare(x.Region, y.Region), cmp.Compare(x.Place, y.Place))
	}, func(x, y *profile.LineUse) {
		x.Written |= y.Written
		x.Read |= y.Read
		x.Loads += y.Loads
		x.Stores += y.Stores
		x.HITM += y.HITM
	})
}
