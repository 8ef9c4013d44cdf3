package export

import (
	"encoding/csv"
	"io"
	"reflect"
	"strconv"
	"strings"

	"numaopt/internal/profile"
)

// WriteCSV writes the access table as CSV (RFC 4180, lines end in LF): a line of
// the columns' names, those of Parquet, then a line for each record. A home that is
// not known is empty. Names that a spreadsheet would take for a formula, since they
// begin with one of = + - @ or with a tab or a carriage return, get an apostrophe
// before them.
//
// Source of that rule: OWASP, CSV Injection.
func WriteCSV(w io.Writer, p *profile.Profile) error {
	n := findNames(p)
	for _, list := range [][]string{n.objects, n.regions} {
		for i, s := range list {
			list[i] = inert(s)
		}
	}
	out := csv.NewWriter(w)
	columns := columnNames()
	if err := out.Write(columns); err != nil {
		return err
	}
	var x Record
	line := make([]string, len(columns))
	for i := range p.Rows {
		n.record(p, i, &x)
		if err := out.Write(x.fields(line)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func inert(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// columnNames are those of Record's tags.
func columnNames() []string {
	var list []string
	for f := range reflect.TypeFor[Record]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		list = append(list, name)
	}
	return list
}

// fields sets line to the values of x in the order of columnNames.
func (x *Record) fields(line []string) []string {
	home := ""
	if x.Home != nil {
		home = number(*x.Home)
	}
	return append(line[:0], x.Object, x.Kind, number(x.Instance), number(x.Page), number(x.Thread), number(x.Rank), number(x.CPU), number(x.Node),
		home, x.Region, x.RegionKind, x.Op, x.Level, number(x.Accesses), number(x.LatencyCycles))
}

func number[T int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
