//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/operator"
)

// operatorInput returns input with a file of the administrator and a file of the
// user.
func operatorInput(t *testing.T, administrator, user string) config.Input {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the administrator's file must belong to root")
	}
	root, home := t.TempDir(), t.TempDir()
	in := config.Input{WorkDir: home, Home: home, Getenv: func(string) string { return "" }, Operator: &operator.File{Root: root}}
	for file, text := range map[string]string{in.Operator.Path(): administrator, config.UserFile(in): user} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

const digestA, digestB = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

// In managed mode, the user's settings can only be stricter than the
// administrator's. Otherwise, both count.
func TestOperatorPolicy(t *testing.T) {
	user := "policy: {approved: [b=" + digestB + "], rules: [allow mcp.b.x, ' Allow: y', ask mcp.b.y, deny mcp.b.z], threshold: THRESHOLD}\n"
	for _, tt := range []struct {
		name, presence, threshold string
		approved, rules           []string
		want                      string // threshold
	}{
		{"cooperative", "", "CRITICAL", []string{"a=" + digestA, "b=" + digestB}, []string{"allow mcp.a.x", "allow mcp.b.x", " Allow: y", "ask mcp.b.y", "deny mcp.b.z"}, "CRITICAL"},
		{"managed", "presence: managed, ", "CRITICAL", []string{"a=" + digestA}, []string{"allow mcp.a.x", "ask mcp.b.y", "deny mcp.b.z"}, "MEDIUM"},
		{"managed, and the user is stricter", "presence: managed, ", "LOW", []string{"a=" + digestA}, []string{"allow mcp.a.x", "ask mcp.b.y", "deny mcp.b.z"}, "LOW"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := operatorInput(t, "policy: {"+tt.presence+"approved: [a="+digestA+"], rules: [allow mcp.a.x], threshold: MEDIUM}\n", strings.ReplaceAll(user, "THRESHOLD", tt.threshold))
			c, err := config.Load(in)
			if err != nil {
				t.Fatal(err)
			}
			if p := c.Policy; !slices.Equal(p.Approved, tt.approved) || !slices.Equal(p.Rules, tt.rules) || p.Threshold != tt.want || c.Managed() != (tt.presence != "") {
				t.Errorf("policy %+v", p)
			}
			if len(c.Notes) != map[bool]int{true: 2}[c.Managed()] || c.Files[0] != in.Operator.Path() || in.NamedFiles()[0] != in.Operator.Path() {
				t.Errorf("notes %v, files %v", c.Notes, c.Files)
			}
		})
	}
}

func TestOperatorFaults(t *testing.T) {
	for _, tt := range []struct{ name, administrator, user, want string }{
		{"another key", "skills: {enabled: false}\n", "", "only policy.presence, policy.approved, policy.rules, policy.threshold can be set in this file"},
		{"values of the user", "user: {a: b}\n", "", "unknown key user"},
		{"an unknown mode", "policy: {presence: strict}\n", "", `"strict" is not one of`},
		{"not YAML", "policy: {", "", "is not valid YAML"},
		{"the user sets the mode", "", "policy: {presence: managed}\n", "only the administrator of the machine can set managed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := operatorInput(t, tt.administrator, tt.user)
			if _, err := config.Load(in); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if managed, err := in.IsManaged(); managed != (tt.user == "") || (err != nil) != managed {
				t.Errorf("managed %v, %v", managed, err)
			}
		})
	}
}

// Whatever nobody but the administrator can have written is denied.
func TestUnsafeOperatorFileDenies(t *testing.T) {
	in := operatorInput(t, "policy: {}\n", "")
	if managed, err := in.IsManaged(); managed || err != nil {
		t.Errorf("managed %v, %v", managed, err)
	}
	if err := os.Chmod(in.Operator.Path(), 0o666); err != nil {
		t.Fatal(err)
	}
	if managed, err := in.IsManaged(); !managed || err == nil {
		t.Errorf("managed %v, %v", managed, err)
	}
	if _, err := config.Load(in); err == nil || !strings.Contains(err.Error(), "writable by others (mode 0666); the administrator can repair it: chown root") {
		t.Errorf("error %v", err)
	}
}
