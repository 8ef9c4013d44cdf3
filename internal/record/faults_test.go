package record

import (
	"testing"
	"testing/fstest"
)

func TestMigrated(t *testing.T) {
	for text, want := range map[string]uint64{
		"nr_free_pages 12\nnuma_pages_migrated 1788\npgmigrate_success 9\n": 1788,
		"nr_free_pages 12\n": 0,
	} {
		if got := migrated(fstest.MapFS{"proc/vmstat": {Data: []byte(text)}}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := migrated(fstest.MapFS{}); got != 0 {
		t.Errorf("without the file: %d", got)
	}
}
