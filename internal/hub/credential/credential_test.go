package credential

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/remote"
)

func TestName(t *testing.T) {
	for host, want := range map[string]string{
		"github.com":                 "git_github_com",
		"GitHub.com":                 "git_github_com",
		"git-hub.com":                "git_git__hub_com",
		"git.example.com:8443":       "git_git_example_com___8443",
		"xn--bcher-kva.example":      "git_xn____bcher__kva_example",
		"127.0.0.1:80":               "git_127_0_0_1___80",
		"a_b.example":                "", // it would be a.b.example
		"a.-b.example":               "",
		"a-.b.example":               "",
		"a..b":                       "",
		"[::1]:443":                  "",
		"":                           "",
		strings.Repeat("a", 200):     "",
		"example.com/x":              "",
		"example.com\nauthorization": "",
	} {
		if got := Name(host); got != want {
			t.Errorf("the secret for %q is %q, want %q", host, got, want)
		}
	}
}

// The credential of one host is never used for another.
func TestNamesAreUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.StringMatching(`[ab1.:_-]{1,12}`)
		a, b := host.Draw(t, "a"), host.Draw(t, "b")
		if name := Name(a); a != b && name != "" && name == Name(b) {
			t.Errorf("%q and %q have the one name %s", a, b, name)
		}
	})
}

func TestParse(t *testing.T) {
	for value, want := range map[string]remote.Credential{
		"token":         {Password: "token"},
		" token\n":      {Password: "token"},
		"ada:pass:word": {User: "ada", Password: "pass:word"},
	} {
		if got := *parseCredential(value); got != want {
			t.Errorf("%q is read as %+v", value, got)
		}
	}
}
