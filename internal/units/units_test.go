package units

import (
	"math"
	"testing"
)

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		want Bytes
		bad  bool
	}{
		{"0", 0, false}, {"64", 64, false}, {"64B", 64, false},
		{"16K", 16 << 10, false}, {"16k", 16 << 10, false}, {"16KB", 16 << 10, false}, {"16KiB", 16 << 10, false},
		{" 64 MiB ", 64 << 20, false}, {"1.5M", 3 << 19, false}, {"2g", 2 << 30, false}, {"1T", 1 << 40, false},
		{"", 0, true}, {"K", 0, true}, {"-1", 0, true}, {"-1K", 0, true}, {"1X", 0, true}, {"1iB", 0, true},
		{"0.3", 0, true}, {"1e3", 0, true}, {"0x10", 0, true}, {"nan", 0, true}, {"1.2.3K", 0, true},
		{"9223372036854775807", math.MaxInt64, false}, {"9007199254740993K", 0, true}, {"99999999999999999999", 0, true},
	} {
		got, err := ParseBytes(c.text)
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d, error %v", c.text, got, err, c.want, c.bad)
		}
	}
}

func TestPrintBytes(t *testing.T) {
	for _, c := range []struct {
		b           Bytes
		text, exact string
		pages       int
	}{
		{0, "0 B", "0", 0}, {1, "1 B", "1", 1}, {4096, "4 KiB", "4KiB", 1}, {4097, "4.0 KiB", "4097", 2},
		{3 << 19, "1.5 MiB", "1536KiB", 384}, {64 << 20, "64 MiB", "64MiB", 16384}, {-5, "-5 B", "-5", 0},
		{math.MaxInt64, "8388608 TiB", "9223372036854775807", 1 << 51},
	} {
		if got := c.b.String(); got != c.text {
			t.Errorf("%d prints as %q, want %q", int64(c.b), got, c.text)
		}
		if got := c.b.Exact(); got != c.exact {
			t.Errorf("%d prints exactly as %q, want %q", int64(c.b), got, c.exact)
		}
		if got := c.b.Pages(); got != c.pages {
			t.Errorf("%d bytes are %d pages, want %d", int64(c.b), got, c.pages)
		}
	}
}

func TestPercent(t *testing.T) {
	if got := Percent(1, 4); got != 25 {
		t.Errorf("Percent(1, 4) = %v", got)
	}
	if got := Percent(1, 0); got != 0 {
		t.Errorf("Percent(1, 0) = %v", got)
	}
	for _, c := range []struct {
		pct  float64
		want string
	}{
		{0, "0.0 %"}, {0.01, "< 0.1 %"}, {12.34, "12.3 %"}, {99.97, "> 99.9 %"}, {100, "100.0 %"}, {math.NaN(), "-"},
	} {
		if got := FormatPercent(c.pct); got != c.want {
			t.Errorf("FormatPercent(%v) = %q, want %q", c.pct, got, c.want)
		}
	}
	for _, c := range []struct {
		text string
		want float64
		bad  bool
	}{
		{"10", 10, false}, {"12.5%", 12.5, false}, {" 3 % ", 3, false}, {"-1", 0, true}, {"101", 0, true}, {"NaN", 0, true}, {"", 0, true},
	} {
		got, err := ParsePercent(c.text)
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("ParsePercent(%q) = %v, %v", c.text, got, err)
		}
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"16K", "64MiB", "1.5M", "-1", "9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBytes(text)
		if err != nil {
			return
		}
		if again, err := ParseBytes(b.Exact()); b < 0 || err != nil || again != b {
			t.Errorf("%q is %d bytes, prints as %q and reads as %d, %v", text, b, b.Exact(), again, err)
		}
	})
}
