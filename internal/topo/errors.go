package topo

import "errors"

// ErrOneNode says that a machine has one node where the question needs several:
// nothing there is remote. It ends numaopt with exit status 3.
var ErrOneNode = errors.New("one NUMA node: nothing is remote there; name a topology, such as --topology 4x2, or use numaopt lab")
