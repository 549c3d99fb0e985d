// Package requestedbounds parses the sandbox bounds that a skill requests in
// its frontmatter.
//
// It never grants anything; package policy does.
//
// Start reading at [Parse].
package requestedbounds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/secretname"
	"github.com/loadout-dev/loadout/policy"
)

const (
	maxFrontmatterBytes = 1 << 20
	maxList             = 256 // entries per list
)

// unbounded holds the widest bounds. Intersecting other bounds with it
// normalizes them.
var unbounded = policy.Bounds{Network: []string{"*"}, Secrets: []string{"*"}, WorkspaceWrite: true}

// checkHost returns an error unless s is a host pattern.
func checkHost(s string) error {
	_, err := policy.Permissions{Network: []string{s}}.Normalize()
	return err
}

// numericLimits maps the numeric fields that a skill can request to their
// maximum values.
var numericLimits = map[string]struct {
	most  int
	field func(*policy.Bounds) *int
}{
	"memory_mb": {1 << 20, func(b *policy.Bounds) *int { return &b.MemoryMB }},
	"seconds":   {86_400, func(b *policy.Bounds) *int { return &b.Seconds }},
	"processes": {1 << 16, func(b *policy.Bounds) *int { return &b.Processes }},
	"disk_mb":   {1 << 20, func(b *policy.Bounds) *int { return &b.DiskMB }},
	"min_tier":  {9, func(b *policy.Bounds) *int { return &b.MinTier }},
}

// Parse returns the bounds that a skill requests in its frontmatter, which is a
// JSON object. They are in the mapping "sandbox" at the top level or under
// "metadata", with these fields:
//
// - network and secrets: a list, or a string with commas or spaces between entries
// - memory_mb, seconds, processes, disk_mb, min_tier: integers from 1
// - workspace_write: true or false
// - inject: see [ParseInjections]
//
// A missing field is zero: no host, no secret, and no limit beyond the
// operator's. An unknown or invalid field is ignored and reported as a problem.
func Parse(frontmatter json.RawMessage) (policy.Bounds, []policy.Problem) {
	p := boundsParser{}
	where, ask := p.findSandbox(frontmatter)
	for _, key := range slices.Sorted(maps.Keys(ask)) {
		p.position = where + "." + printable.Text(key, 100)
		p.parseEntry(key, ask[key])
	}
	return unbounded.Intersect(p.out), p.problems
}

type boundsParser struct {
	out      policy.Bounds
	position string
	problems []policy.Problem
}

func (p *boundsParser) addProblem(format string, args ...any) {
	p.problems = append(p.problems, policy.Problem{Where: p.position, Message: printable.Text(fmt.Sprintf(format, args...), 1000)})
}

// findSandbox returns the path of the sandbox mapping in the frontmatter, and
// the mapping.
func (p *boundsParser) findSandbox(frontmatter json.RawMessage) (string, map[string]json.RawMessage) {
	p.position = "frontmatter"
	if len(frontmatter) == 0 {
		return "", nil
	}
	if len(frontmatter) > maxFrontmatterBytes {
		p.addProblem("too large (limit %d bytes)", maxFrontmatterBytes)
		return "", nil
	}
	top, ok := decodeObject(frontmatter)
	if !ok {
		p.addProblem("not a mapping")
		return "", nil
	}
	below, _ := decodeObject(top["metadata"])
	raw, ok := top["sandbox"]
	p.position = "sandbox"
	switch nested, two := below["sandbox"]; {
	case ok && two:
		p.addProblem("set both at the top level and under metadata; both are ignored")
		return "", nil
	case two:
		raw, p.position = nested, "metadata.sandbox"
	case !ok:
		return "", nil
	}
	ask, ok := decodeObject(raw)
	if !ok && string(raw) != "null" {
		p.addProblem("not a mapping, such as {network: [example.com]}")
	}
	return p.position, ask
}

func decodeObject(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(raw, &m)
	return m, err == nil && m != nil
}

func (p *boundsParser) parseEntry(key string, raw json.RawMessage) {
	if l, ok := numericLimits[key]; ok {
		if n, ok := parseNumber(raw); !ok || n < 1 || n > l.most {
			p.addProblem("not an integer from 1 to %d", l.most)
		} else {
			*l.field(&p.out) = n
		}
		return
	}
	switch key {
	case "network":
		p.out.Network = append(p.out.Network, p.parseList(raw, checkHost)...)
	case "secrets":
		p.out.Secrets = append(p.out.Secrets, p.parseList(raw, secretname.Check)...)
	case "inject":
		for _, in := range p.parseInjections(raw) {
			p.out.Network, p.out.Secrets = append(p.out.Network, in.Pattern()), append(p.out.Secrets, in.Secret)
		}
	case "workspace_write":
		if json.Unmarshal(raw, &p.out.WorkspaceWrite) != nil {
			p.addProblem("not true or false")
		}
	default:
		p.addProblem("unknown field")
	}
}

// parseNumber parses an integer, which may be in quotes.
func parseNumber(raw json.RawMessage) (int, bool) {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(bytes.TrimSpace(raw))
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err == nil
}

// parseList parses a list of strings, or a string with several entries, and
// returns the valid entries.
func (p *boundsParser) parseList(raw json.RawMessage, check func(string) error) []string {
	var all []string
	var text string
	if json.Unmarshal(raw, &text) == nil {
		all = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
	} else if json.Unmarshal(raw, &all) != nil {
		p.addProblem("not a list of strings")
		return nil
	}
	if len(all) > maxList {
		p.addProblem("too many entries (%d, limit %d); all are ignored", len(all), maxList)
		return nil
	}
	var good []string
	for _, s := range all {
		if err := check(s); err != nil {
			p.addProblem("%v", err)
		} else {
			good = append(good, s)
		}
	}
	return good
}
