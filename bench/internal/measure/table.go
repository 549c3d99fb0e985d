//go:build linux

package measure

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Row is one thing that is measured again and again.
type Row struct {
	Name  string
	Unit  string  // as µs, ms, MB
	Limit *Row    // what it is compared with
	Goal  float64 // at most; 0 for none
	// Over says that the goal is for what goes beyond the limit.
	Over bool

	samples []float64
}

// Add adds a sample.
func (r *Row) Add(v float64) { r.samples = append(r.samples, v) }

// AddTime adds a time in the row's unit, ms or µs.
func (r *Row) AddTime(d time.Duration) {
	if r.Unit == "ms" {
		r.Add(d.Seconds() * 1e3)
	} else {
		r.Add(d.Seconds() * 1e6)
	}
}

// Median is the median of the samples.
func (r *Row) Median() float64 { return r.Quantile(0.5) }

// Quantile is the smallest sample that is not below a share q of all.
func (r *Row) Quantile(q float64) float64 { return Quantile(r.samples, q) }

// Quantile is the smallest of values that is not below a share q of all, 0 of
// none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// Ratio is the median over the rounds of r by its limit in the same round.
func (r *Row) Ratio() float64 { return r.Times(r.Limit) }

// Times is the median over the rounds of r by o in the same round.
func (r *Row) Times(o *Row) float64 {
	if len(r.samples) != len(o.samples) {
		return r.Median() / o.Median()
	}
	ratios := make([]float64, len(r.samples))
	for i := range ratios {
		ratios[i] = r.samples[i] / o.samples[i]
	}
	return Quantile(ratios, 0.5)
}

// Beyond is the median over the rounds of r less its limit in the same round.
func (r *Row) Beyond() float64 {
	if len(r.samples) != len(r.Limit.samples) {
		return r.Median() - r.Limit.Median()
	}
	d := make([]float64, len(r.samples))
	for i := range d {
		d[i] = r.samples[i] - r.Limit.samples[i]
	}
	return Quantile(d, 0.5)
}

// Verdict compares the median with the goal, "" where there is none.
func (r *Row) Verdict() string {
	if r.Goal == 0 {
		return ""
	}
	got, of := r.Median(), ""
	if r.Over {
		got, of = r.Beyond(), " over the limit"
	}
	return Verdict(fmt.Sprintf("≤ %s %s%s", Number(r.Goal), r.Unit, of), got <= r.Goal)
}

// Verdict is a goal and whether it was met.
func Verdict(goal string, met bool) string {
	if met {
		return goal + ": met"
	}
	return goal + ": **missed**"
}

// Table is rows in the order in which they came.
type Table struct{ rows []*Row }

// Row adds a row.
func (t *Table) Row(r Row) *Row {
	t.rows = append(t.rows, &r)
	return &r
}

// Rows are the rows in the order in which they were added.
func (t *Table) Rows() []*Row { return t.rows }

// Print writes the table as Markdown: the median of each row, its range, and
// how often it holds its limit.
func (t *Table) Print(w io.Writer) {
	rows := [][]string{{"what", "median", "range", "× limit", "goal"}}
	for _, r := range t.rows {
		if len(r.samples) == 0 {
			continue
		}
		ratio := ""
		if r.Limit != nil {
			ratio = fmt.Sprintf("%.2f", r.Ratio())
		}
		rows = append(rows, []string{r.Name, Number(r.Median()) + " " + r.Unit,
			Number(slices.Min(r.samples)) + "–" + Number(slices.Max(r.samples)), ratio, r.Verdict()})
	}
	Markdown(w, rows)
}

// Markdown writes a table; the first row is its head.
func Markdown(w io.Writer, rows [][]string) {
	for i, r := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(r, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat(" --- |", len(r)))
		}
	}
}

// Number renders a value with three digits that say something.
func Number(v float64) string {
	switch {
	case v >= 100 || v <= -100 || v == float64(int(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
