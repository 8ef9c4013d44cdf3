package topo

// CacheModel is the modelled hierarchy: private L1 and L2 per CPU, one LLC per
// node, LRU, write-allocate; a store invalidates all other copies of its line.
type CacheModel struct {
	LineBytes int   `json:"line_bytes"`
	L1        Cache `json:"l1"`
	L2        Cache `json:"l2"`
	LLC       Cache `json:"llc"`
}

// Cache is one level.
type Cache struct {
	Bytes int64 `json:"bytes"`
	Ways  int   `json:"ways"`
}

// DefaultCaches is the model used where nothing else is asked for: 64 B lines,
// L1 16 KiB 8-way and L2 64 KiB 8-way per CPU, LLC 512 KiB 16-way per node. It is
// scaled below real machines because profiled problem sizes are, too.
func DefaultCaches() CacheModel {
	return CacheModel{LineBytes: 64, L1: Cache{16 << 10, 8}, L2: Cache{64 << 10, 8}, LLC: Cache{512 << 10, 16}}
}
