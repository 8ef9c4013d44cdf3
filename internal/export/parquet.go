package export

import (
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"

	"numaopt/internal/profile"
)

const (
	// rowGroup bounds the memory that writing takes: a row group is held until it is
	// whole. It is that of DuckDB, so that a reader has one per thread.
	rowGroup = 122_880
	// batch is how many records are made at a time.
	batch = 4096
)

// WriteParquet writes the access table as Parquet, compressed by zstd, with where
// the profile comes from in the file's metadata.
func WriteParquet(w io.Writer, p *profile.Profile) error {
	out := parquet.NewGenericWriter[Record](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.CreatedBy("numaopt", valid(p.Run.Version), ""),
		parquet.KeyValueMetadata("numaopt.command", valid(strings.Join(p.Run.Command, " "))),
		parquet.KeyValueMetadata("numaopt.source", valid(p.Run.Source)),
		parquet.KeyValueMetadata("numaopt.topology", p.Run.Topology.String()),
		parquet.KeyValueMetadata("numaopt.period", number(int64(p.Run.Period))))
	n := findNames(p)
	records := make([]Record, batch)
	for from := 0; from < len(p.Rows); from += batch {
		list := records[:min(batch, len(p.Rows)-from)]
		for i := range list {
			n.record(p, from+i, &list[i])
		}
		if _, err := out.Write(list); err != nil {
			return err
		}
	}
	return out.Close()
}
