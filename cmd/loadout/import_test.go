package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/upstream"
)

// What looks like a token moves, what names one already stays.
func TestTokensOfImportedServersMove(t *testing.T) {
	c := &upstream.Config{Name: "my server", Env: map[string]string{
		"API_KEY": "s3cr3t-1", "MY_SERVER_TOKEN": "s3cr3t-2", "OTHER": "ghp_0123456789abcdef", "PLAIN": "value", "REF_TOKEN": "${TOKEN}",
		"SHORT_KEY": "abc", "ASKED": "${input:some id}", "REGION": "${input:region}",
	}, Headers: map[string]string{"Authorization": "Bearer s3cr3t-3", "X-Api-Key": "s3cr3t-4", "Accept": "text/plain"}}
	moved := moveSecrets(c, []upstream.Input{{ID: "some id", Password: true}, {ID: "region", Default: "eu"}})
	values := map[string]string{}
	for _, m := range moved {
		values[m.Secret] = m.value
	}
	if diff := cmp.Diff(map[string]string{"MY_SERVER_API_KEY": "s3cr3t-1", "MY_SERVER_TOKEN": "s3cr3t-2", "MY_SERVER_OTHER": "ghp_0123456789abcdef",
		"MY_SERVER_AUTHORIZATION": "s3cr3t-3", "MY_SERVER_X_API_KEY": "s3cr3t-4", "SOME_ID": ""}, values); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{
		"API_KEY": "${{secrets.MY_SERVER_API_KEY}}", "MY_SERVER_TOKEN": "${{secrets.MY_SERVER_TOKEN}}", "OTHER": "${{secrets.MY_SERVER_OTHER}}",
		"PLAIN": "value", "REF_TOKEN": "${TOKEN}", "SHORT_KEY": "abc", "ASKED": "${{secrets.SOME_ID}}", "REGION": "eu",
	}, c.Env); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"Authorization": "Bearer ${{secrets.MY_SERVER_AUTHORIZATION}}", "X-Api-Key": "${{secrets.MY_SERVER_X_API_KEY}}",
		"Accept": "text/plain"}, c.Headers); diff != "" {
		t.Error(diff)
	}
}

func TestNamesOfSecrets(t *testing.T) {
	for _, tt := range [][3]string{
		{"github", "GITHUB_TOKEN", "GITHUB_TOKEN"}, {"a.b c", "key", "A_B_C_KEY"}, {"", "1st", "SECRET_1ST"}, {"", "…", "SECRET_"}, {"日本", "k", "K"},
	} {
		if got := secretFor(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%q %q: %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

func TestTokensThatStayAreSaid(t *testing.T) {
	for _, tt := range []struct {
		args []string
		url  string
		want bool
	}{
		{[]string{"--api-key=s3cr3t"}, "", true},
		{[]string{"--token", "s3cr3t"}, "", true},
		{[]string{"sk-0123456789abcdef"}, "", true},
		{nil, "https://example.com/mcp?api_key=s3cr3t", true},
		{nil, "https://me:s3cr3t@example.com/mcp", true},
		{[]string{"--token", "${TOKEN}", "--api-key=${{secrets.K}}", "-y", "server", "--token"}, "https://example.com/mcp?a=b", false},
	} {
		if got := openTokens(&upstream.Config{Args: tt.args, URLs: []string{tt.url}}); got != tt.want {
			t.Errorf("%q %q: %v", tt.args, tt.url, got)
		}
	}
}
