package profile

import "slices"

// MergeCodeUses puts a list in the order of a profile's and adds up those of one code,
// object, region and operation. The list is changed.
func MergeCodeUses(list []CodeUse) []CodeUse {
	return Merge(list, compareCodeUses, func(to, from *CodeUse) {
		to.Local += from.Local
		to.Remote += from.Remote
		to.Unknown += from.Unknown
		to.Latency += from.Latency
		to.Loads += from.Loads
	})
}

// MergeIntervals puts a list in the order of a profile's and adds up those of one
// thread, part, region and home. The list is changed.
func MergeIntervals(list []Interval) []Interval {
	return Merge(list, compareIntervals, func(to, from *Interval) {
		to.Count += from.Count
		to.Work += from.Work
	})
}

// Merge sorts a list and adds up what is equal. The list is changed.
func Merge[T any](list []T, compare func(a, b T) int, add func(to, from *T)) []T {
	slices.SortFunc(list, compare)
	out := list[:0]
	for i := range list {
		if n := len(out); n > 0 && compare(out[n-1], list[i]) == 0 {
			add(&out[n-1], &list[i])
		} else {
			out = append(out, list[i])
		}
	}
	return out
}
