package profile

import (
	"math"
	"testing"
)

// TestBuckets: the bounds of the buckets follow on each other, each latency is within
// those of its bucket, and a bucket is never wider than an eighth of what it begins with.
func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		cycles      uint64
		bucket      int32
		least, most uint64
	}{
		{0, 0, 0, 0}, {1, 1, 1, 1}, {16, 16, 16, 16}, {17, 17, 17, 18}, {18, 17, 17, 18}, {32, 24, 31, 32}, {33, 25, 33, 36},
		{64, 32, 61, 64}, {65, 33, 65, 72}, {256, 48, 241, 256}, {257, 49, 257, 288}, {math.MaxUint64, Buckets - 1, 15<<60 + 1, math.MaxUint64},
	} {
		least, most := BucketBounds(c.bucket)
		if got := LatencyBucket(c.cycles); got != c.bucket || least != c.least || most != c.most {
			t.Errorf("%d cycles: bucket %d of %d to %d, want %d of %d to %d", c.cycles, got, least, most, c.bucket, c.least, c.most)
		}
	}
	end := uint64(0)
	for b := int32(1); b < Buckets; b++ {
		least, most := BucketBounds(b)
		if least != end+1 || LatencyBucket(least) != b || LatencyBucket(most) != b {
			t.Fatalf("bucket %d is of %d to %d, after %d", b, least, most, end)
		}
		if most-least > least/8 {
			t.Errorf("bucket %d is of %d to %d", b, least, most)
		}
		end = most
	}
}
