package html

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"numaopt/internal/report"
)

const (
	// mostRows and mostTableBytes bound a table: who looks for the four-hundredth
	// object has the JSON.
	mostRows       = 300
	mostTableBytes = 250_000
	// longName is the characters of a name that a table shows; a title has the rest.
	longName = 120
	// longest is the characters of a name that a page has at all.
	longest = 1000
)

// table is rows that can be sorted and filtered.
type table struct {
	ID, Caption string
	Columns     []heading
	Rows        []row
	More        string // what was cut
	bytes       int
}

// heading is the head of a column.
type heading struct {
	Name, Help string
	Number     bool // right aligned, and large ones first when sorted
}

type row struct {
	Pick  int // the object that a click shows; 0 is none, else its index+1
	Cells []cell
}

// cell is text, perhaps with the number that it is sorted by, and a drawing.
type cell struct {
	Text, Title string
	Sort        string  // empty: by text
	Bar         float64 // per cent; 0 is none
	Strip       []strip
	Number      bool
}

// strip is the part of one node in a cell.
type strip struct {
	Node int
	Pct  float64
}

// Colour is one of eight, see page.css.
func (s strip) Colour() int { return s.Node % 8 }

// add appends a row, unless the table is full.
func (t *table) add(r row) bool {
	for _, c := range r.Cells {
		t.bytes += len(html.EscapeString(c.Text)) + len(html.EscapeString(c.Title)) + 60*len(c.Strip) + 60
	}
	if len(t.Rows) >= mostRows || t.bytes > mostTableBytes {
		return false
	}
	for i := range r.Cells {
		r.Cells[i].Number = t.Columns[i].Number
	}
	t.Rows = append(t.Rows, r)
	return true
}

// fill adds n rows, most important first, and says how many there was no room for and
// how much each of these is of the whole at most.
func (t *table) fill(n int, make func(int) row, share func(int) report.Pct) *table {
	if n == 0 {
		return nil
	}
	for i := range n {
		if t.add(make(i)) {
			continue
		}
		most := report.Pct(0)
		for k := i; k < n; k++ {
			if s := share(k); s > most {
				most = s
			}
		}
		t.More = fmt.Sprintf("%d more are left out, each with %v of the whole at most; numaopt report --format json has all.", n-i, most)
		break
	}
	t.dropEmpty()
	return t
}

// dropEmpty removes the columns that say nothing, but for the first.
func (t *table) dropEmpty() {
	for c := len(t.Columns) - 1; c > 0; c-- {
		says := func(r row) bool { return r.Cells[c].Text != "" || len(r.Cells[c].Strip) > 0 }
		if slices.ContainsFunc(t.Rows, says) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, c, c+1)
		for i := range t.Rows {
			t.Rows[i].Cells = slices.Delete(t.Rows[i].Cells, c, c+1)
		}
	}
}

// name is a name cut to what a table shows.
func name(s string) cell {
	short := middle(s, longName)
	if short == s {
		return cell{Text: s}
	}
	return cell{Text: short, Title: middle(s, longest)}
}

// middle cuts s to n characters, in the middle.
func middle(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	tail := n / 3
	return string(r[:n-tail-1]) + "…" + string(r[len(r)-tail:])
}

// percent is a share with a bar.
func percent(p report.Pct) cell {
	c := cell{Text: strings.TrimSuffix(p.String(), " %"), Sort: sortKey(float64(p))}
	if !math.IsNaN(float64(p)) {
		c.Bar = math.Round(float64(p)*10) / 10
	}
	return c
}

func sortKey(f float64) string {
	if math.IsNaN(f) {
		return "-1"
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}

// number is n as people read it.
func number[N int | int64 | uint64](n N, text string) cell {
	return cell{Text: text, Sort: strconv.FormatInt(int64(n), 10)}
}

// quantity prints a number to three digits: "12.3 million".
func quantity(n uint64) string {
	for _, s := range []struct {
		size float64
		name string
	}{{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}, {1e4, "thousand"}} {
		if f := float64(n) / s.size; f >= 1 {
			if s.name == "thousand" {
				return fmt.Sprintf("%.0f thousand", float64(n)/1e3)
			}
			return strconv.FormatFloat(f, 'f', max(0, 2-int(math.Log10(f))), 64) + " " + s.name
		}
	}
	return strconv.FormatUint(n, 10)
}

// homes is where pages are, as a strip.
func homes(byNode []int, unknown int) cell {
	all := unknown
	for _, n := range byNode {
		all += n
	}
	var c cell
	var text []string
	most := 0
	for node, n := range byNode {
		if n == 0 {
			continue
		}
		pct := 100 * float64(n) / float64(all)
		c.Strip = append(c.Strip, strip{node, math.Round(10*pct) / 10})
		text = append(text, fmt.Sprintf("node %d %.0f %%", node, pct))
		most = max(most, n)
	}
	if unknown > 0 {
		text = append(text, fmt.Sprintf("not known %.0f %%", 100*float64(unknown)/float64(all)))
	}
	c.Title = strings.Join(text, ", ")
	c.Sort = strconv.Itoa(most)
	return c
}
