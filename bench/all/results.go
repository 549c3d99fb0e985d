//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// figure is the median of a row's samples, with their range.
type figure struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
	N      int     `json:"n"`
}

// result is the last measurement of a row.
type result struct {
	Unit string `json:"unit"`
	figure
	Limit *figure `json:"limit,omitempty"`
	// LimitUnit is the unit of the limit of a ratio. The ratio itself has no unit.
	LimitUnit string             `json:"limit_unit,omitempty"`
	Peers     map[string]*figure `json:"peers,omitempty"` // those measured in the same run
	Date      string             `json:"date"`
	Commit    string             `json:"commit"` // with a plus sign if files were changed
	Load      string             `json:"load"`   // load average before the run
	Command   string             `json:"command"`
	Machine   string             `json:"machine"`
}

// results maps the keys of rows to their last measurements.
type results map[string]result

const resultsFile = "results.json"

func readResults() (results, error) {
	text, err := os.ReadFile(resultsFile)
	if err != nil {
		return nil, err
	}
	var all results
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read %s: %w", resultsFile, err)
	}
	return all, nil
}

func (r results) write() error {
	text, err := json.MarshalIndent(r, "", "  ") // sorts the keys
	if err != nil {
		return err
	}
	return os.WriteFile(resultsFile, append(text, '\n'), 0o644)
}

// samples holds the samples of records by name.
type samples map[string]measure.Record

// add appends the samples of a record to those of earlier passes.
func (s samples) add(r measure.Record) {
	r.Samples = append(s[r.Name].Samples, r.Samples...)
	s[r.Name] = r
}

// figureOf computes a figure of a record. The limit may be missing unless the figure compares with
// it.
func (s samples) figureOf(record, limit string, of measureOf) (*figure, error) {
	values := s[record].Samples
	if len(values) == 0 {
		return nil, fmt.Errorf("record %q is missing", record)
	}
	if of != value {
		bounds := s[limit].Samples
		if len(bounds) == 0 {
			return nil, fmt.Errorf("record %q is missing", limit)
		}
		median := measure.Quantile(bounds, 0.5)
		compared := make([]float64, len(values))
		for i, v := range values {
			switch {
			case of == added:
				compared[i] = v - median
			case len(bounds) == len(values):
				compared[i] = v / bounds[i]
			default:
				compared[i] = v / median
			}
		}
		values = compared
	}
	return &figure{measure.Quantile(values, 0.5), measure.Quantile(values, 0.1), measure.Quantile(values, 0.9), len(values)}, nil
}

// resultOf computes the result of a row. Peers without records are not available.
func (s samples) resultOf(r *row) (result, error) {
	f, err := s.figureOf(r.record, r.limit, r.of)
	if err != nil {
		return result{}, err
	}
	out := result{Unit: s[r.record].Unit, figure: *f}
	if r.of == ratio {
		out.Unit, out.LimitUnit = "×", out.Unit
	}
	if r.limit != "" {
		if out.Limit, err = s.figureOf(r.limit, "", value); err != nil {
			return result{}, err
		}
	}
	for name, record := range r.peers {
		p, err := s.figureOf(record, r.limit, r.of)
		if err != nil {
			continue
		}
		if out.Peers == nil {
			out.Peers = map[string]*figure{}
		}
		out.Peers[name] = p
	}
	return out, nil
}
