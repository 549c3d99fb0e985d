//go:build linux

package measure

import (
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"time"
)

// Row is one measured quantity with its samples.
type Row struct {
	Name     string
	Unit     string // such as µs, ms or MB
	Baseline *Row   // row to compare with

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

// Record is a row as JSON.
type Record struct {
	Name    string    `json:"name"` // "TABLE: ROW" if the table has a name
	Unit    string    `json:"unit"`
	Samples []float64 `json:"samples"`
}

// Table collects rows for printing.
type Table struct {
	Name string // distinguishes rows with the same name in JSON

	rows []*Row
}

// Row appends a row and returns it.
func (t *Table) Row(r Row) *Row {
	t.rows = append(t.rows, &r)
	return &r
}

// RowNamed returns the row with a name, which it appends if there is none.
func (t *Table) RowNamed(name, unit string) *Row {
	for _, r := range t.rows {
		if r.Name == name {
			return r
		}
	}
	return t.Row(Row{Name: name, Unit: unit})
}

// Rows returns the rows in the order in which they were added.
func (t *Table) Rows() []*Row { return t.rows }

// Print writes the table as Markdown with the median, the range and the ratio to the baseline of
// each row. With -json, it also writes a [Record] of each row to standard output. It omits rows
// without samples.
func (t *Table) Print(w io.Writer) {
	rows := [][]string{{"what", "median", "p10–p90", "× baseline"}}
	for _, r := range t.rows {
		if len(r.samples) == 0 {
			continue
		}
		ratio := ""
		if r.Baseline != nil {
			ratio = fmt.Sprintf("%.2f", r.Ratio())
		}
		rows = append(rows, []string{r.Name, FormatNumber(r.Median()) + " " + r.Unit,
			FormatNumber(r.Quantile(0.1)) + "–" + FormatNumber(r.Quantile(0.9)), ratio})
		if records != nil {
			name := r.Name
			if t.Name != "" {
				name = t.Name + ": " + name
			}
			if err := records.Encode(Record{name, r.Unit, r.samples}); err != nil {
				log.Fatal(err)
			}
		}
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

// FormatVerdict formats a goal and whether it was met.
func FormatVerdict(goal string, met bool) string {
	if met {
		return goal + ": met"
	}
	return goal + ": **missed**"
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
