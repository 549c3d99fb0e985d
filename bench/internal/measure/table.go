//go:build linux

package measure

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Row is one measured quantity with its samples.
type Row struct {
	Name     string
	Unit     string  // such as µs, ms or MB
	Baseline *Row    // row to compare with
	Goal     float64 // maximum value; 0 if none
	Over     bool    // whether the goal applies to the excess over the baseline

	samples []float64
}

// Add adds a sample.
func (r *Row) Add(v float64) { r.samples = append(r.samples, v) }

// AddTime adds a duration as a sample, converted to the row's unit: ms or µs.
func (r *Row) AddTime(d time.Duration) {
	if r.Unit == "ms" {
		r.Add(d.Seconds() * 1e3)
	} else {
		r.Add(d.Seconds() * 1e6)
	}
}

// Median returns the median of the samples.
func (r *Row) Median() float64 { return r.Quantile(0.5) }

// Quantile returns the q-quantile of the samples.
func (r *Row) Quantile(q float64) float64 { return Quantile(r.samples, q) }

// Quantile returns the q-quantile of values: the element at index
// q*len(values), rounded down, of the sorted values, or the last one if the
// index is too large. It returns 0 if there are no values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// Ratio returns the median, over all rounds, of r divided by its baseline.
func (r *Row) Ratio() float64 { return r.RatioTo(r.Baseline) }

// RatioTo returns the median, over all rounds, of r divided by o.
func (r *Row) RatioTo(o *Row) float64 {
	if len(r.samples) != len(o.samples) {
		return r.Median() / o.Median()
	}
	ratios := make([]float64, len(r.samples))
	for i := range ratios {
		ratios[i] = r.samples[i] / o.samples[i]
	}
	return Quantile(ratios, 0.5)
}

// Excess returns the median, over all rounds, of r minus its baseline.
func (r *Row) Excess() float64 {
	if len(r.samples) != len(r.Baseline.samples) {
		return r.Median() - r.Baseline.Median()
	}
	d := make([]float64, len(r.samples))
	for i := range d {
		d[i] = r.samples[i] - r.Baseline.samples[i]
	}
	return Quantile(d, 0.5)
}

// Verdict describes the goal and whether it is met. It returns "" if there is no
// goal.
func (r *Row) Verdict() string {
	if r.Goal == 0 {
		return ""
	}
	got, of := r.Median(), ""
	if r.Over {
		got, of = r.Excess(), " over the baseline"
	}
	return FormatVerdict(fmt.Sprintf("≤ %s %s%s", FormatNumber(r.Goal), r.Unit, of), got <= r.Goal)
}

// FormatVerdict formats a goal and whether it was met.
func FormatVerdict(goal string, met bool) string {
	if met {
		return goal + ": met"
	}
	return goal + ": **missed**"
}

// Table collects rows for printing.
type Table struct{ rows []*Row }

// Row appends a row and returns it.
func (t *Table) Row(r Row) *Row {
	t.rows = append(t.rows, &r)
	return &r
}

// Rows returns the rows in the order in which they were added.
func (t *Table) Rows() []*Row { return t.rows }

// Print writes the table as Markdown with the median, the range and the ratio to the baseline of
// each row. It omits rows without samples.
func (t *Table) Print(w io.Writer) {
	rows := [][]string{{"what", "median", "range", "× baseline", "goal"}}
	for _, r := range t.rows {
		if len(r.samples) == 0 {
			continue
		}
		ratio := ""
		if r.Baseline != nil {
			ratio = fmt.Sprintf("%.2f", r.Ratio())
		}
		rows = append(rows, []string{r.Name, FormatNumber(r.Median()) + " " + r.Unit,
			FormatNumber(slices.Min(r.samples)) + "–" + FormatNumber(slices.Max(r.samples)), ratio, r.Verdict()})
	}
	WriteMarkdown(w, rows)
}

// WriteMarkdown writes rows as a Markdown table. The first row is the header.
func WriteMarkdown(w io.Writer, rows [][]string) {
	for i, r := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(r, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat(" --- |", len(r)))
		}
	}
}

// FormatNumber formats a value with three significant digits.
func FormatNumber(v float64) string {
	switch {
	case v >= 100 || v <= -100 || v == float64(int(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
