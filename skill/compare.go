package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// CompareFrontmatter compares the frontmatter with a JSON object that another program
// derived from it. It returns the path of the first field that differs, such as
// "metadata.version", or "" if all fields are equal. A field that only one of them
// has is a difference. Programs read unquoted values such as dates, yes and 012 by
// YAML 1.1 or by YAML 1.2, so a value is equal if it is one of the two readings.
//
// CompareFrontmatter returns an error if the frontmatter was repaired or js is
// not a JSON object.
func (s *Skill) CompareFrontmatter(js json.RawMessage) (field string, err error) {
	if s.Repaired {
		return "", errRepaired
	}
	root, serr := parseYAML(s.Frontmatter)
	if serr != nil {
		return "", serr
	}
	d := json.NewDecoder(bytes.NewReader(js))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return "", fmt.Errorf("decode frontmatter: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || object == nil {
		return "", errors.New("decode frontmatter: not a JSON object")
	}
	if root == nil {
		root = &yaml.Node{Kind: yaml.MappingNode}
	}
	field, equal := compareNode(root, object, "")
	if !equal && field == "" {
		field = "the frontmatter"
	}
	if equal {
		return "", nil
	}
	return field, nil
}

// compareNode compares a node with a decoded JSON value. If they differ, it
// returns the path of the difference below at.
func compareNode(n *yaml.Node, v any, at string) (field string, equal bool) {
	switch n = resolve(n); n.Kind {
	case yaml.MappingNode:
		return compareMapping(n, v, at)
	case yaml.SequenceNode:
		list, ok := v.([]any)
		if !ok || len(list) != len(n.Content) {
			return at, false
		}
		for i, c := range n.Content {
			if field, equal := compareNode(c, list[i], at+"["+strconv.Itoa(i)+"]"); !equal {
				return field, false
			}
		}
		return "", true
	}
	return at, equalScalar(n, v)
}

func compareMapping(n *yaml.Node, v any, at string) (field string, equal bool) {
	object, ok := v.(map[string]any)
	if !ok {
		return at, false
	}
	below := func(key string) string { return strings.TrimPrefix(at+"."+shorten(key), ".") }
	values := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			return at, false
		}
		values[key.Value] = n.Content[i+1] // the last duplicate wins, as in renderer
	}
	for i := 0; i+1 < len(n.Content); i += 2 { // in source order
		key := resolve(n.Content[i]).Value
		if values[key] != n.Content[i+1] { // otherwise nested duplicates take exponential time
			continue
		}
		other, ok := object[key]
		if !ok {
			return below(key), false
		}
		if field, equal := compareNode(values[key], other, below(key)); !equal {
			return field, false
		}
	}
	var added []string
	for key := range object {
		if values[key] == nil {
			added = append(added, key)
		}
	}
	if len(added) > 0 {
		return below(slices.Min(added)), false
	}
	return "", true
}

// equalScalar reports whether v is a reading of a scalar.
func equalScalar(n *yaml.Node, v any) bool {
	if js, err := toJSON(n); err == nil {
		d := json.NewDecoder(bytes.NewReader(js))
		d.UseNumber()
		var own any
		if d.Decode(&own) == nil && equalValue(own, v) {
			return true
		}
	}
	return isPlain(n) && isOlderReading(n.Value, v)
}

func equalValue(a, b any) bool {
	x, isNumber := a.(json.Number)
	y, ok := b.(json.Number)
	if isNumber && ok {
		return equalNumber(string(x), string(y))
	}
	return !isNumber && !ok && a == b // nil, bool or string
}

// wholeNumber matches numbers that are compared exactly.
var wholeNumber = lazyregexp.New(`^-?[0-9]{1,1000}$`)

func equalNumber(a, b string) bool {
	if wholeNumber.MatchString(a) && wholeNumber.MatchString(b) {
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		return x.Cmp(y) == 0
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x == y
}

// Plain scalars of YAML 1.1 that are strings or other numbers in YAML 1.2.
var (
	olderInt   = lazyregexp.New(`^[-+]?(?:0b[01_]+|0[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)$`)
	olderBase  = lazyregexp.New(`^[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`)
	olderFloat = lazyregexp.New(`^[-+]?(?:[0-9][0-9_]*)?\.?[0-9_]*(?:[eE][-+]?[0-9]+)?$`)
	olderTime  = lazyregexp.New(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?$`)
)

// isOlderReading reports whether a JSON value is the reading of a plain scalar
// by YAML 1.1.
func isOlderReading(text string, v any) bool {
	switch v := v.(type) {
	case bool:
		switch strings.ToLower(text) {
		case "y", "yes", "on", "true":
			return v
		case "n", "no", "off", "false":
			return !v
		}
	case json.Number:
		number, ok := olderNumber(text)
		return ok && equalNumber(number, string(v))
	case string:
		if !olderTime.MatchString(text) {
			return false
		}
		a, ok := parseTime(text)
		b, ok2 := parseTime(v)
		return ok && ok2 && a.Equal(b)
	}
	return false
}

// olderNumber returns the decimal form of a number in YAML 1.1.
func olderNumber(text string) (string, bool) {
	if len(text) > 400 {
		return "", false
	}
	plain := strings.ReplaceAll(text, "_", "")
	decimal := func(f float64, err error) (string, bool) {
		return strconv.FormatFloat(f, 'g', -1, 64), err == nil && !math.IsInf(f, 0)
	}
	switch {
	case olderInt.MatchString(text):
		i, ok := new(big.Int).SetString(strings.TrimPrefix(plain, "+"), 0) // 0b, 0x, and a leading zero for octal
		if !ok {
			return "", false
		}
		return i.String(), true
	case olderBase.MatchString(text):
		total := 0.0
		for _, part := range strings.Split(strings.TrimLeft(plain, "+-"), ":") {
			f, err := strconv.ParseFloat(part, 64)
			if err != nil {
				return "", false
			}
			total = total*60 + f
		}
		if plain[0] == '-' {
			total = -total
		}
		return decimal(total, nil)
	case olderFloat.MatchString(text):
		return decimal(strconv.ParseFloat(plain, 64))
	}
	return "", false
}

// timeLayouts are the forms in which programs write the timestamps of YAML 1.1.
var timeLayouts = []string{
	time.DateOnly, "2006-1-2", time.RFC3339Nano, "2006-1-2T15:4:5Z07:00", "2006-1-2t15:4:5Z07:00", "2006-1-2 15:4:5 Z07:00", "2006-1-2 15:4:5Z07:00",
	"2006-1-2T15:4:5 Z07:00", "2006-1-2T15:4:5", "2006-1-2t15:4:5", "2006-1-2 15:4:5", "2006-1-2 15:4:5 -7", "2006-1-2 15:4:5 -07",
}

func parseTime(s string) (time.Time, bool) {
	if len(s) > 64 {
		return time.Time{}, false
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
