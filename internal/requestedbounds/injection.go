package requestedbounds

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/secretname"
	"github.com/loadout-dev/loadout/policy"
)

// ParseInjections returns the entries of "inject" in a skill's requested bounds
// (see [Parse]). Each entry is a mapping with secret, host (name or name:port)
// and optionally header and prefix. The default header is Authorization with
// the prefix "Bearer ". Invalid entries are dropped; [Parse] reports them and
// adds the hosts and secrets of the valid entries.
func ParseInjections(frontmatter json.RawMessage) []policy.Injection {
	p := boundsParser{}
	_, ask := p.findSandbox(frontmatter)
	if raw, ok := ask["inject"]; ok {
		return p.parseInjections(raw)
	}
	return nil
}

func (p *boundsParser) parseInjections(raw json.RawMessage) []policy.Injection {
	var all []map[string]string
	if json.Unmarshal(raw, &all) != nil || len(all) > maxList {
		p.addProblem("not a list of at most %d mappings such as {secret: API_KEY, host: api.example.com}", maxList)
		return nil
	}
	var out []policy.Injection
	for i, entry := range all {
		in, err := parseInjection(entry)
		if err != nil {
			p.addProblem("entry %d: %v", i+1, err)
			continue
		}
		out = append(out, in)
	}
	return out
}

func parseInjection(entry map[string]string) (policy.Injection, error) {
	in := policy.Injection{Secret: entry["secret"], Port: 443, Header: "Authorization"}
	for key := range entry {
		switch key {
		case "secret", "host", "header", "prefix":
		default:
			return in, fmt.Errorf("unknown field %q", printable.Text(key, 100))
		}
	}
	if err := secretname.Check(in.Secret); err != nil {
		return in, err
	}
	in.Host = entry["host"]
	if err := checkHost(in.Host); err != nil {
		return in, err
	}
	if strings.Contains(in.Host, "*") {
		return in, errors.New("host must not be a pattern: a secret belongs to one host")
	}
	if i := strings.LastIndexByte(in.Host, ':'); i > strings.LastIndexByte(in.Host, ']') {
		in.Port, _ = strconv.Atoi(in.Host[i+1:]) // checkHost checked it
		in.Host = in.Host[:i]
	}
	if v, ok := entry["header"]; ok {
		if v == "" || strings.ContainsFunc(v, func(r rune) bool {
			return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			return in, fmt.Errorf("invalid header name %q", printable.Text(v, 100))
		}
		in.Header = v
	}
	if strings.EqualFold(in.Header, "Authorization") {
		in.Prefix = "Bearer "
	}
	if v, ok := entry["prefix"]; ok {
		in.Prefix = v
	}
	if strings.ContainsFunc(in.Prefix, func(r rune) bool { return r < ' ' || r > '~' }) || len(in.Prefix) > 100 {
		return in, errors.New("invalid prefix, want at most 100 printable ASCII characters")
	}
	return in, nil
}
