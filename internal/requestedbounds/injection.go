package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
)

// Injection is a secret that the sandbox adds to a skill's requests to one
// host, so that the skill's code never holds it.
type Injection struct {
	Secret string `json:"secret"`
	Host   string `json:"host"`   // name or address
	Port   int    `json:"port"`   // default 443
	Header string `json:"header"` // default Authorization
	Prefix string `json:"prefix"` // default "Bearer " for the header Authorization
}

// ParseInjections returns the entries of "inject" in the requested bounds of a
// skill (see [ParseRequestedBounds]). Each entry is a mapping with secret, host
// (name or name:port) and optionally header and prefix; the default is
// Authorization with the prefix "Bearer ". Invalid entries are dropped;
// [ParseRequestedBounds] reports them and adds the hosts and secrets of the
// others.
func ParseInjections(frontmatter json.RawMessage) []Injection {
	p := boundsParser{}
	_, ask := p.findSandbox(frontmatter)
	if raw, ok := ask["inject"]; ok {
		return p.parseInjections(raw)
	}
	return nil
}

func (p *boundsParser) parseInjections(raw json.RawMessage) []Injection {
	var all []map[string]string
	if json.Unmarshal(raw, &all) != nil || len(all) > maxList {
		p.addProblem("not a list of at most %d mappings such as {secret: API_KEY, host: api.example.com}", maxList)
		return nil
	}
	var out []Injection
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

func parseInjection(entry map[string]string) (Injection, error) {
	in := Injection{Secret: entry["secret"], Port: 443, Header: "Authorization"}
	for key := range entry {
		switch key {
		case "secret", "host", "header", "prefix":
		default:
			return in, fmt.Errorf("unknown field %q", printable.Text(key, 100))
		}
	}
	if err := CheckSecretName(in.Secret); err != nil {
		return in, err
	}
	h, err := parseHost(entry["host"])
	if err != nil {
		return in, err
	}
	if strings.Contains(entry["host"], "*") {
		return in, errors.New("host must not be a pattern: a secret belongs to one host")
	}
	in.Host = entry["host"]
	if h.port != 0 {
		in.Port = h.port
		in.Host = strings.TrimSuffix(in.Host, ":"+strconv.Itoa(h.port))
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
		return in, errors.New("prefix has characters that are not allowed in a header")
	}
	return in, nil
}

// Pattern returns the host pattern that has to be granted.
func (in Injection) Pattern() string { return in.Host + ":" + strconv.Itoa(in.Port) }
