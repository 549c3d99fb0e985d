package clientimport

import (
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// Each setting of a server is written to the servers file, and reads back.
func TestEncodeEverySetting(t *testing.T) {
	for key, change := range map[string]func(*upstream.Config){
		"cwd: /work":                   func(c *upstream.Config) { c.Dir = "/work" },
		"args: [a, b c]":               func(c *upstream.Config) { c.Args = []string{"a", "b c"} },
		"envFile: .env":                func(c *upstream.Config) { c.EnvFile = ".env" },
		"includeTools: [a]":            func(c *upstream.Config) { c.Include = []string{"a"} },
		"excludeTools: [b]":            func(c *upstream.Config) { c.Exclude = []string{"b"} },
		"tools: [c]":                   func(c *upstream.Config) { c.Tools = []string{"c"} },
		"disabled: true":               func(c *upstream.Config) { c.Disabled = true },
		"connectTimeout: 1s":           func(c *upstream.Config) { c.ConnectTimeout = time.Second },
		"timeout: 2s":                  func(c *upstream.Config) { c.CallTimeout = 2 * time.Second },
		"concurrency: 1":               func(c *upstream.Config) { c.Concurrency = 1 },
		"safety: HIGH":                 func(c *upstream.Config) { c.Safety = "HIGH" },
		"ask: true":                    func(c *upstream.Config) { c.RequireApproval = true },
		"stateful: true":               func(c *upstream.Config) { c.Stateful = true },
		"connect: at-start":            func(c *upstream.Config) { c.AtStart = true },
		"pin: strict":                  func(c *upstream.Config) { c.Strict = true },
		"url: https://a.example/mcp":   func(c *upstream.Config) { remote(c, "https://a.example/mcp") },
		"urls: ['https://a.example', ": func(c *upstream.Config) { remote(c, "https://a.example", "https://b.example") },
		"type: http":                   func(c *upstream.Config) { remote(c, "https://a.example"); c.Type = upstream.HTTP },
		"env:\n":                       func(c *upstream.Config) { c.Env = map[string]string{"A": "x: y"} },
		"headers:\n":                   func(c *upstream.Config) { remote(c, "https://a.example"); c.Headers = map[string]string{"X": "1"} },
	} {
		c := &upstream.Config{Name: "s", Type: upstream.Stdio, Command: "run"}
		change(c)
		into := &serversFile{}
		if err := into.parse(nil); err != nil {
			t.Fatal(err)
		}
		into.add(c)
		data, err := into.encode()
		if err != nil { // it does not read back as the same
			t.Errorf("%s: %v", key, err)
			continue
		}
		if !strings.Contains(string(data), key) {
			t.Errorf("no %q in\n%s", key, data)
		}
		plain := &serversFile{}
		if err := plain.parse(nil); err != nil {
			t.Fatal(err)
		}
		plain.add(&upstream.Config{Name: "s", Type: upstream.Stdio, Command: "run"})
		if without, err := plain.encode(); err != nil || strings.Contains(string(without), key) {
			t.Errorf("%q is written without the setting: %v\n%s", key, err, without)
		}
	}
}

func remote(c *upstream.Config, urls ...string) { c.Type, c.Command, c.URLs = "", "", urls }

// A sign-in is announced for remote servers whose address has no credentials.
func TestMayNeedLogin(t *testing.T) {
	for _, tt := range []struct {
		c    upstream.Config
		want bool
	}{
		{upstream.Config{Command: "run"}, false},
		{upstream.Config{URLs: []string{"https://a.example"}}, true},
		{upstream.Config{URLs: []string{"https://me:pw@a.example"}}, false},
		{upstream.Config{URLs: []string{"https://a.example?key=${env:KEY}"}}, false},
		{upstream.Config{URLs: []string{"http://127.0.0.1:8000"}}, false},
		{upstream.Config{URLs: []string{"http://localhost:8000"}}, false},
		{upstream.Config{URLs: []string{"http://localhost:8000"}, OAuth: &upstream.OAuthClient{}}, true},
		{upstream.Config{URLs: []string{"https://a.example"}, Headers: map[string]string{"Authorization": "x"}}, false},
		{upstream.Config{URLs: []string{"https://a.example"}, Headers: map[string]string{"Accept": "x"}}, true},
	} {
		if got := mayNeedLogin(&tt.c); got != tt.want {
			t.Errorf("%+v: %t", tt.c, got)
		}
	}
}
