package advice

import "numaopt/internal/units"

// layout is a distribution of runtime-c/include/numaopt.h over nodes: wise along one
// axis, or block-exclusive over two, the slower one first. It mirrors
// runtime-c/api/dist.c.
type layout struct {
	nodes  int
	elem   int64
	extent [3]int64 // elements along X, Y and Z
	padded [3]int64 // the same as they lie in memory
	axes   []int    // one or two of 0 to 2
	length [2]int64 // indices along axes[i] that a node owns; 0: shared out evenly
}

// newLayout is the array of dims elements, the slowest dimension first, of which
// those after the third are part of the element.
func newLayout(dims []int64, elem int64, axes []int, nodes int) *layout {
	l := &layout{nodes: nodes, elem: elem, extent: [3]int64{1, 1, 1}, axes: axes}
	for i, n := range dims {
		if i < 3 {
			l.extent[i] = n
		} else {
			l.elem *= n
		}
	}
	l.padded = l.extent
	return l
}

// stride is the bytes from one index along an axis to the next.
func (l *layout) stride(axis int) int64 {
	s := l.elem
	for i := 2; i > axis; i-- {
		s *= l.padded[i]
	}
	return s
}

func (l *layout) bytes() int64 { return l.stride(0) * l.padded[0] }

// block is which part along axes[which] the byte at offset is in.
func (l *layout) block(which int, offset int64) int64 {
	axis := l.axes[which]
	s := l.stride(axis)
	index := offset % (s * l.padded[axis]) / s
	if l.length[which] > 0 {
		return index / l.length[which]
	}
	return min(index*int64(l.nodes)/l.extent[axis], int64(l.nodes)-1)
}

// owner is the node of a byte.
func (l *layout) owner(offset int64) int {
	sum := int64(0)
	for which := range l.axes {
		sum += l.block(which, offset)
	}
	return int(sum % int64(l.nodes))
}

// pad makes the pieces along the faster axis whole pages, as numaopt_alloc does, if
// that costs no more than a quarter.
func (l *layout) pad() {
	which := len(l.axes) - 1
	axis := l.axes[which]
	if axis == 0 {
		return
	}
	n, p := l.extent[axis], int64(l.nodes)
	unit := units.PageSize / gcd(units.PageSize, l.stride(axis))
	length, padded := roundUp((n+p-1)/p, unit), roundUp(n, unit)
	if length*p > n+n/4 {
		return
	}
	l.padded[axis], l.length[which] = padded, length
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// loss is the share of the array's bytes, in [0,1], that lie on a page of which
// another node owns more: no placement of pages can save them. head is where in its
// page the array begins.
func (l *layout) loss(head int64) float64 {
	owned := make([]int64, l.nodes)
	var lost, all int64
	flush := func() {
		var sum, most int64
		for n, b := range owned {
			sum, most = sum+b, max(most, b)
			owned[n] = 0
		}
		lost, all = lost+sum-most, all+sum
	}
	end := l.bytes()
	for offset := int64(0); offset < end; {
		next := min(l.run(offset), end, (offset+head)/units.PageSize*units.PageSize+units.PageSize-head)
		owned[l.owner(offset)] += next - offset
		if (next+head)%units.PageSize == 0 {
			flush()
		}
		offset = next
	}
	flush()
	if all == 0 {
		return 0
	}
	return float64(lost) / float64(all)
}

// run is where the run of bytes of one index along the faster axis that holds offset
// ends.
func (l *layout) run(offset int64) int64 {
	s := l.stride(l.axes[len(l.axes)-1])
	return offset/s*s + s
}
