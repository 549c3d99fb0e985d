package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Injection is a secret that a skill wants added to its requests to one host,
// so that its code never holds it.
type Injection struct {
	Secret string `json:"secret"`
	Host   string `json:"host"`   // a name or an address
	Port   int    `json:"port"`   // 443 unless the entry names another
	Header string `json:"header"` // Authorization unless the entry names another
	Prefix string `json:"prefix"` // "Bearer " where the header is Authorization
}

// ParseInject returns the entries of inject in what a skill asks for, see
// [ParseAsk]: a list of mappings with secret, host (name or name:port), and,
// where it is not Authorization with the prefix "Bearer ", header and prefix.
// [ParseAsk] takes their hosts and secrets as asked for, and reports what is
// wrong with them.
func ParseInject(frontmatter json.RawMessage) []Injection {
	p := asking{}
	_, ask := p.locate(frontmatter)
	if raw, ok := ask["inject"]; ok {
		return p.injections(raw)
	}
	return nil
}

func (p *asking) injections(raw json.RawMessage) []Injection {
	var all []map[string]string
	if json.Unmarshal(raw, &all) != nil || len(all) > maxList {
		p.problem("it has to be a list of at most %d mappings of text, as {secret: API_KEY, host: api.example.com}", maxList)
		return nil
	}
	var out []Injection
	for i, entry := range all {
		in, err := injection(entry)
		if err != nil {
			p.problem("entry %d: %v", i+1, err)
			continue
		}
		out = append(out, in)
	}
	return out
}

func injection(entry map[string]string) (Injection, error) {
	in := Injection{Secret: entry["secret"], Port: 443, Header: "Authorization"}
	for key := range entry {
		switch key {
		case "secret", "host", "header", "prefix":
		default:
			return in, fmt.Errorf("nothing of the name %q can be asked for", visible(key, 100))
		}
	}
	if err := checkSecret(in.Secret); err != nil {
		return in, err
	}
	h, err := parseHost(entry["host"])
	if err != nil {
		return in, err
	}
	if strings.Contains(entry["host"], "*") {
		return in, errors.New("a secret is added for one host, not for a pattern")
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
			return in, fmt.Errorf("%q is not the name of a header", visible(v, 100))
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
		return in, errors.New("its prefix has characters that a header cannot have")
	}
	return in, nil
}

// Pattern is the host as something to be granted.
func (in Injection) Pattern() string { return in.Host + ":" + strconv.Itoa(in.Port) }
