package access

import (
	"errors"
	"fmt"
	"math"

	"numaopt/internal/profile"
	"numaopt/internal/stat"
	"numaopt/internal/units"
)

// MinSamples is the fewest DRAM samples that support a remote percentage. With
// 1000 independent ones its 95 % interval is ±3 points wide at most. A full
// trace has as many samples as accesses; there it keeps a handful of start-up
// accesses from passing for the program's behaviour.
const MinSamples = 1000

// ErrTooFew says that a profile has too few DRAM accesses, or page faults, for a statement.
var ErrTooFew = errors.New("too few")

// ErrFirstTouches says that a profile knows who touched pages first, and nothing of
// who used them then.
var ErrFirstTouches = errors.New("page faults tell only who touched each page first")

// again is the page faults to each page from which on they go on after the first
// touch: NUMA balancing takes pages away to see who comes for them.
const again = 1.5

// OnlyFirst reports whether p is of page faults that are first touches.
func OnlyFirst(p *profile.Profile) bool {
	return p.Run.Source == "faults" && float64(Total(p).All.Total()) < again*float64(len(p.Pages))
}

// Samples is the number of samples behind count accesses of DRAM.
func Samples(p *profile.Profile, count uint64) uint64 {
	if r := p.Run.Recording; r != nil && r.DRAMPeriod > 0 {
		return uint64(math.Round(float64(count) / r.DRAMPeriod))
	}
	return count / max(1, p.Run.Period)
}

// Support returns nil if p has enough DRAM accesses with a known home for its
// remote percentage, else an error that wraps ErrTooFew or ErrFirstTouches and says
// what would do.
func Support(p *profile.Profile) error {
	if OnlyFirst(p) {
		return fmt.Errorf("%w, not who uses it later: profile with --source pmu or emulate, or with the kernel's NUMA balancing on (sysctl kernel.numa_balancing=1), where page faults go on", ErrFirstTouches)
	}
	known := Total(p).DRAM.Known()
	n := Samples(p, known)
	if p.Run.Source == "faults" && n < MinSamples {
		return fmt.Errorf("%w page faults: %d with a known home, a statement wants %d; let the program run longer", ErrTooFew, n, MinSamples)
	}
	if n >= MinSamples {
		return nil
	}
	if period := p.Run.Period; period > 1 {
		want := known / MinSamples
		cure := fmt.Sprintf("profile with --period %d or less", want)
		if want <= 1 {
			cure = "profile without --period, or a larger problem"
		}
		return fmt.Errorf("%w DRAM accesses: %d samples with a known home, a statement wants %d; %s", ErrTooFew, n, MinSamples, cure)
	}
	return fmt.Errorf("%w DRAM accesses: %d with a known home, a statement wants %d; profile a problem whose data is larger than the LLC (%v a node here), or name a smaller cache with --llc",
		ErrTooFew, n, MinSamples, units.Bytes(p.Run.Cache.LLC.Bytes))
}

// EffectivePeriod is the accesses for which a DRAM sample stands, as far as chance goes;
// 1 for a full trace.
func EffectivePeriod(p *profile.Profile) float64 {
	sampled := p.Run.Period > 1 || p.Run.Source == "faults" // of those, looks at who uses a page are few
	if r := p.Run.Recording; r != nil && r.EvenPeriod > 0 && sampled {
		return r.EvenPeriod
	}
	return float64(max(1, p.Run.Period))
}

// RemoteInterval is the 95 % confidence interval, in [0,100], of the remote
// percentage of f. For a full trace it is the percentage itself, and both ends
// are NaN where f has no access with a known home.
func RemoteInterval(p *profile.Profile, f Flow) (lo, hi float64) {
	if f.Known() == 0 {
		return math.NaN(), math.NaN()
	}
	period := EffectivePeriod(p)
	if period == 1 {
		return f.RemotePct(), f.RemotePct()
	}
	lo, hi = stat.Wilson(float64(f.Remote)/period, float64(f.Known())/period)
	return 100 * lo, 100 * hi
}
