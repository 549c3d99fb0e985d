package metrics

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// kind is the type of a metric in the Prometheus text format.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
	summary   kind = "summary"
)

// family is a metric that has a series for each combination of label values. It
// is safe for concurrent use.
type family struct {
	name, help string
	kind       kind
	labels     []string  // their names, sorted; at most two
	bounds     []float64 // upper bounds of a histogram's buckets, sorted

	mu     sync.Mutex
	series map[labelValues]*series
}

// labelValues are the values of a family's labels, in the same order.
type labelValues [2]string

// series holds the value of a series.
type series struct {
	value   float64 // the sum of all observed values for a histogram
	count   uint64
	buckets []uint64 // number of values in each bucket, without the one for larger values
}

func newFamily(name, help string, k kind, labels ...string) *family {
	return &family{name: name, help: help, kind: k, labels: labels, series: map[labelValues]*series{}}
}

func newHistogram(name, help string, bounds []float64, labels ...string) *family {
	f := newFamily(name, help, histogram, labels...)
	f.bounds = bounds
	return f
}

// update calls change with the series of the given label values while no other
// call uses it.
func (f *family) update(values []string, change func(*series)) {
	var key labelValues
	copy(key[:], values)
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.series[key]
	if s == nil {
		s = &series{buckets: make([]uint64, len(f.bounds))}
		f.series[key] = s
	}
	change(s)
}

// add adds v to a counter or gauge. If it has no series with the given label
// values, add creates one.
func (f *family) add(v float64, values ...string) {
	f.update(values, func(s *series) { s.value += v })
}

// observe adds a value to a histogram.
func (f *family) observe(v float64, values ...string) {
	f.update(values, func(s *series) {
		s.value += v
		s.count++
		if i := sort.SearchFloat64s(f.bounds, v); i < len(s.buckets) {
			s.buckets[i]++
		}
	})
}

// block returns the text of f.
func (f *family) block() *block {
	b := newBlock(f.name, f.help, f.kind)
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := make([]labelValues, 0, len(f.series))
	for key := range f.series {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y labelValues) int { return slices.Compare(x[:], y[:]) })
	for _, key := range keys {
		var labels []label
		for i, name := range f.labels {
			labels = append(labels, label{name, key[i]})
		}
		if s := f.series[key]; f.kind == histogram {
			b.addHistogram(f.bounds, s, labels)
		} else {
			b.add("", s.value, labels...)
		}
	}
	return b
}

// block is the text of a metric in the [Prometheus text format].
//
// [Prometheus text format]: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
type block struct {
	name   string
	header string
	text   []byte // lines of the series
}

type label struct{ name, value string }

var (
	helpEscaper  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func newBlock(name, help string, k kind) *block {
	return &block{name: name, header: "# HELP " + name + " " + helpEscaper.Replace(help) + "\n# TYPE " + name + " " + string(k) + "\n"}
}

// add adds a line. suffix is added to the name of the metric.
func (b *block) add(suffix string, v float64, labels ...label) {
	b.text = append(append(b.text, b.name...), suffix...)
	for i, l := range labels {
		open := byte(',')
		if i == 0 {
			open = '{'
		}
		b.text = append(append(append(b.text, open), l.name...), `="`...)
		b.text = append(append(b.text, valueEscaper.Replace(l.value)...), '"')
	}
	if len(labels) > 0 {
		b.text = append(b.text, '}')
	}
	b.text = append(append(append(b.text, ' '), formatValue(v)...), '\n')
}

// addHistogram adds the lines of a histogram's series.
func (b *block) addHistogram(bounds []float64, s *series, labels []label) {
	total := uint64(0)
	for i, bound := range bounds {
		total += s.buckets[i]
		b.add("_bucket", float64(total), append(slices.Clip(labels), label{"le", formatValue(bound)})...)
	}
	b.add("_bucket", float64(s.count), append(slices.Clip(labels), label{"le", "+Inf"})...)
	b.add("_sum", s.value, labels...)
	b.add("_count", float64(s.count), labels...)
}

func formatValue(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// joinBlocks joins the blocks that have lines, sorted by name.
func joinBlocks(blocks []*block) []byte {
	slices.SortFunc(blocks, func(a, b *block) int { return strings.Compare(a.name, b.name) })
	var text []byte
	for _, b := range blocks {
		if len(b.text) > 0 {
			text = append(append(text, b.header...), b.text...)
		}
	}
	return text
}
