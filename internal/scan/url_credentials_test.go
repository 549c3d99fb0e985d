package scan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/scan"
)

func TestURLCredentials(t *testing.T) {
	const mixed = "Zk39dPqLw72mXnBv81cRtYhJ"
	for text, want := range map[string][]string{
		"[tides](https://h.test/x?token=abc&page=2)":            {"abc"},
		"![chart](https://h.test/c.png?X-Amz-Signature=00ff#x)": {"00ff"},
		"https://ada:pw@h.test/":                                {"ada:pw"},
		"see https://ghtoken@h.test/a/b.git":                    {"ghtoken"},
		"postgres://ada:pw@db/tides":                            {"ada:pw"},
		"https://h.test/cb#access_token=abc&state=1":            {"abc"},
		"[relative](/shared?sig=abc)":                           {"abc"},
		"[relative](?api_key=abc)":                              {"abc"},
		`<a href="x?password=abc">`:                             {"abc"},
		"https://h.test/?a=1&amp;secret=abc":                    {"abc"},
		"https://h.test/?id=" + mixed:                           {mixed},
		"https://h.test/cb?code=a1b2c3d4":                       {"a1b2c3d4"},
		"https://a.test/?token=one https://b.test/?token=two":   {"one", "two"},
	} {
		got := scan.URLCredentials(text)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		clean, n := scan.RedactURLs(text, "•••")
		if n != len(want) || strings.Contains(clean, "="+want[0]) || strings.Contains(clean, "//"+want[0]) {
			t.Errorf("%s became %s", text, clean)
		}
		if again, n := scan.RedactURLs(clean, "•••"); again != clean || n != 0 {
			t.Errorf("%s became %s", clean, again)
		}
	}
	if got, _ := scan.RedactURLs("[tides](https://h.test/x?token=abc&page=2) and more", "•••"); got != "[tides](https://h.test/x?token=•••&page=2) and more" {
		t.Errorf("got %s", got)
	}
}

func TestURLsWithoutCredentials(t *testing.T) {
	for _, text := range []string{
		"", "a=b", "https://h.test/a?page=2&q=high+water#top", "ssh://git@h.test/a/b.git", "git@h.test:a/b",
		"https://h.test/@ada/post", "https://h.test/?redirect=https%3A%2F%2Fexample.test%2Fpage1", "https://h.test/?code=404",
		"https://h.test/?id=550e8400-e29b-41d4-a716-446655440000", "https://h.test/?v=a-long-slug-of-words-from-2024",
		"if (a / b && c == d) { token=1 }", "mailto:ada@h.test",
	} {
		if got := scan.URLCredentials(text); got != nil {
			t.Errorf("%s: %q", text, got)
		}
		if got, n := scan.RedactURLs(text, "•••"); got != text || n != 0 {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func FuzzRedactURLs(f *testing.F) {
	f.Add("[x](https://a:b@h/?token=abc&amp;key=12345678#sig=x)")
	f.Add("https://•••@h/?token=•••")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 10_000 {
			return
		}
		clean, n := scan.RedactURLs(text, "•••")
		if n == 0 && clean != text {
			t.Errorf("%q became %q", text, clean)
		}
	})
}
