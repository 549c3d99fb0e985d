package scan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/scan"
)

func TestFindSecrets(t *testing.T) {
	token := "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END PRIVATE KEY-----"
	own := "lo_abcdefgh" + strings.Repeat("A1b2_-", 8) + "c"
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
	for text, want := range map[string][]string{
		"The token is " + token + ".":                      {token},
		"Twice: " + token + " and " + token:                {token, token},
		"before\n" + key + "\nafter":                       {key},
		"cut off: -----BEGIN PRIVATE KEY-----\nMIIEvQIBAD": {"-----BEGIN PRIVATE KEY-----\nMIIEvQIBAD"},
		"Use " + own + " here":                             {own},
		jwt:                                                {jwt},
		`password = "correct horse"`:                       nil, // spaces
		`password = "correct-horse-1"`:                     {"correct-horse-1"},
		"postgres://ada:tr0ub4dor@db/tides":                {"tr0ub4dor"},
		"Authorization: Bearer abcdef0123456789abcdef":     {"abcdef0123456789abcdef"},
		"the bearer internationalizations of words":        nil,
		"High water is at 10:30.":                          nil,
		"":                                                 nil,
	} {
		if got := scan.FindSecrets(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
