package clientimport

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/upstream"
)

func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// EncodeConfig encodes a server configuration as JSON, in the form of a servers
// file.
func EncodeConfig(c *upstream.Config) (json.RawMessage, error) {
	text, err := yaml.Dump(encodeServer(c), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, err
	}
	docs, invalid := configfile.Parse(text, configfile.YAML)
	if invalid != nil || len(docs) != 1 {
		return nil, fmt.Errorf("cannot encode server %q", c.Name)
	}
	return docs[0].JSON(), nil
}

// encodeServer encodes a server configuration as YAML.
func encodeServer(c *upstream.Config) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	add := func(key string, v *yaml.Node) { m.Content = append(m.Content, textNode(key), v) }
	text := func(key, s string) {
		if s != "" {
			add(key, textNode(s))
		}
	}
	list := func(key string, l []string) {
		if len(l) == 0 {
			return
		}
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for _, s := range l {
			n.Content = append(n.Content, textNode(s))
		}
		add(key, n)
	}
	texts := func(key string, t map[string]string) {
		if len(t) == 0 {
			return
		}
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, k := range slices.Sorted(maps.Keys(t)) {
			n.Content = append(n.Content, textNode(k), textNode(t[k]))
		}
		add(key, n)
	}
	yes := func(key string, set bool) {
		if set {
			add(key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
		}
	}
	if c.Type != upstream.Stdio {
		text("type", c.Type)
	}
	text("command", c.Command)
	list("args", c.Args)
	texts("env", c.Env)
	text("envFile", c.EnvFile)
	text("cwd", c.Dir)
	if len(c.URLs) == 1 {
		text("url", c.URLs[0])
	} else {
		list("urls", c.URLs)
	}
	texts("headers", c.Headers)
	if c.OAuth != nil {
		add("oauth", encodeOAuth(c.OAuth))
	}
	list("includeTools", c.Include)
	list("excludeTools", c.Exclude)
	list("tools", c.Tools)
	yes("disabled", c.Disabled)
	if c.ConnectTimeout > 0 {
		text("connectTimeout", c.ConnectTimeout.String())
	}
	if c.CallTimeout > 0 {
		text("timeout", c.CallTimeout.String())
	}
	if c.Concurrency > 0 {
		add("concurrency", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(c.Concurrency)})
	}
	text("safety", c.Safety)
	yes("ask", c.RequireApproval)
	yes("stateful", c.Stateful)
	if c.AtStart {
		text("connect", "at-start")
	}
	if c.Strict {
		text("pin", "strict")
	}
	return m
}

// encodeOAuth encodes an OAuth client as YAML. An empty map means that the
// server requires a sign-in.
func encodeOAuth(o *upstream.OAuthClient) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, f := range [][2]string{{"clientId", o.ID}, {"clientSecret", o.Secret}, {"scopes", strings.Join(o.Scopes, ",")}, {"redirectUri", o.Redirect}, {"issuer", o.Issuer}} {
		if f[1] != "" {
			n.Content = append(n.Content, textNode(f[0]), textNode(f[1]))
		}
	}
	return n
}
