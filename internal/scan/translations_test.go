package scan_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/loadout-dev/loadout/internal/scan"
)

// The page has the texts of exactly these rules in Chinese.
func TestRulesAreTranslated(t *testing.T) {
	raw, err := os.ReadFile("../../web/src/shared/i18n/zh-Hans.json")
	if err != nil {
		t.Fatal(err)
	}
	var messages map[string]string
	if err := json.Unmarshal(raw, &messages); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, r := range scan.Rules() {
		want["finding."+r.ID+".message"], want["finding."+r.ID+".advice"] = true, true
	}
	for key := range want {
		if !strings.ContainsFunc(messages[key], func(c rune) bool { return unicode.Is(unicode.Han, c) }) {
			t.Errorf("%s has no Chinese text in web/src/shared/i18n/zh-Hans.json", key)
		}
	}
	for key := range messages {
		if strings.HasPrefix(key, "finding.") && !want[key] {
			t.Errorf("%s: no such rule", key)
		}
	}
}
