package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxAskBytes bounds the frontmatter that is read.
const maxAskBytes = 1 << 20

// limits are the numbers that a skill can ask for, each with its largest.
var limits = map[string]struct {
	most  int
	field func(*Bounds) *int
}{
	"memory_mb": {1 << 20, func(b *Bounds) *int { return &b.MemoryMB }},
	"seconds":   {86_400, func(b *Bounds) *int { return &b.Seconds }},
	"processes": {1 << 16, func(b *Bounds) *int { return &b.Processes }},
	"disk_mb":   {1 << 20, func(b *Bounds) *int { return &b.DiskMB }},
	"min_tier":  {9, func(b *Bounds) *int { return &b.MinTier }},
}

// ParseAsk returns what a skill asks for in its frontmatter, a JSON object:
// the mapping sandbox at the top level or under metadata, with network and
// secrets (a list, or text with commas or blanks between the entries),
// memory_mb, seconds, processes, disk_mb, min_tier (whole numbers from 1),
// workspace_write (true or false), and inject, of which [ParseInject] tells.
//
// What is not stated is zero: no host, no secret, and no limit beyond those of
// the hub. An entry that is unknown or cannot be read is a problem, and not
// asked for.
func ParseAsk(frontmatter json.RawMessage) (Bounds, []Problem) {
	p := asking{}
	where, ask := p.locate(frontmatter)
	for _, key := range slices.Sorted(maps.Keys(ask)) {
		p.where = where + "." + visible(key, 100)
		p.entry(key, ask[key])
	}
	p.out.Network, p.out.Secrets = hostList(parseHosts(p.out.Network)), nameList(p.out.Secrets)
	return p.out, p.problems
}

type asking struct {
	out      Bounds
	where    string
	problems []Problem
}

func (p *asking) problem(format string, args ...any) {
	p.problems = append(p.problems, Problem{Where: p.where, Message: visible(fmt.Sprintf(format, args...), 1000)})
}

// locate finds the mapping.
func (p *asking) locate(frontmatter json.RawMessage) (string, map[string]json.RawMessage) {
	p.where = "frontmatter"
	if len(frontmatter) == 0 {
		return "", nil
	}
	if len(frontmatter) > maxAskBytes {
		p.problem("it has more than %d bytes", maxAskBytes)
		return "", nil
	}
	top, ok := object(frontmatter)
	if !ok {
		p.problem("it is no mapping")
		return "", nil
	}
	below, _ := object(top["metadata"]) // what else metadata may be is not our matter
	raw, ok := top["sandbox"]
	p.where = "sandbox"
	switch nested, two := below["sandbox"]; {
	case ok && two:
		p.problem("it is given at the top level and under metadata: nothing is asked for")
		return "", nil
	case two:
		raw, p.where = nested, "metadata.sandbox"
	case !ok:
		return "", nil
	}
	ask, ok := object(raw)
	if !ok && string(raw) != "null" {
		p.problem("it has to be a mapping, such as {network: [example.com]}")
	}
	return p.where, ask
}

func object(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(raw, &m)
	return m, err == nil && m != nil
}

func (p *asking) entry(key string, raw json.RawMessage) {
	if l, ok := limits[key]; ok {
		if n, ok := number(raw); !ok || n < 1 || n > l.most {
			p.problem("it has to be a whole number from 1 to %d", l.most)
		} else {
			*l.field(&p.out) = n
		}
		return
	}
	switch key {
	case "network":
		p.out.Network = append(p.out.Network, p.list(raw, func(s string) error { _, err := parseHost(s); return err })...)
	case "secrets":
		p.out.Secrets = append(p.out.Secrets, p.list(raw, checkSecret)...)
	case "inject":
		for _, in := range p.injections(raw) {
			p.out.Network, p.out.Secrets = append(p.out.Network, in.Pattern()), append(p.out.Secrets, in.Secret)
		}
	case "workspace_write":
		if json.Unmarshal(raw, &p.out.WorkspaceWrite) != nil {
			p.problem("it has to be true or false")
		}
	default:
		p.problem("nothing of this name can be asked for")
	}
}

// number reads a whole number, also one in quotes.
func number(raw json.RawMessage) (int, bool) {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(bytes.TrimSpace(raw))
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err == nil
}

// list reads a list of strings, or one string of several, and returns those
// that are right.
func (p *asking) list(raw json.RawMessage, check func(string) error) []string {
	var all []string
	var text string
	if json.Unmarshal(raw, &text) == nil {
		all = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
	} else if json.Unmarshal(raw, &all) != nil {
		p.problem("it has to be a list of text")
		return nil
	}
	if len(all) > maxList {
		p.problem("it has %d entries, more than %d: none is asked for", len(all), maxList)
		return nil
	}
	var good []string
	for _, s := range all {
		if err := check(s); err != nil {
			p.problem("%v", err)
		} else {
			good = append(good, s)
		}
	}
	return good
}
