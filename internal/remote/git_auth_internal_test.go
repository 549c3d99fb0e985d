package remote

import "testing"

func TestRepoHost(t *testing.T) {
	for address, want := range map[string]string{
		"https://git.example.com/team/skills.git":     "git.example.com",
		"https://git.example.com:8443/team/skills":    "git.example.com:8443",
		"https://user:pass@git.example.com/team/repo": "git.example.com",
		"ssh://git@git.example.com:2222/team/skills":  "git.example.com:2222",
		"git@git.example.com:team/skills.git":         "git.example.com",
		"/srv/git/skills":                             "",
	} {
		if got := repoHost(address); got != want {
			t.Errorf("host of %s: %q, want %q", address, got, want)
		}
	}
}
