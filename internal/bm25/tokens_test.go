package bm25_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/bm25"
)

func TestTokens(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string // each token and its text
	}{
		{"The tide, at Cuxhaven.", []string{"the The", "tide tide", "at at", "cuxhaven Cuxhaven"}},
		{"naïve ＣＡＦÉ", []string{"naive naïve", "cafe ＣＡＦÉ"}},
		{"useGitHub C++", []string{"usegithub useGitHub", "use useGitHub", "git useGitHub", "hub useGitHub", "c++ C++"}},
		{"看潮汐表 PDF文件", []string{"看潮 看潮", "潮汐 潮汐", "汐表 汐表", "表 表", "pdf PDF", "文件 文件", "件 件"}},
		{"潮", []string{"潮 潮"}},
		{"潮 汐", []string{"潮 潮", "汐 汐"}},
		{"Straße STRASSE ΟΔΟΣ οδός", []string{"strasse Straße", "strasse STRASSE", "οδοσ ΟΔΟΣ", "οδοσ οδός"}},
		{"…!", nil},
		{"", nil},
	} {
		var got []string
		for x := range bm25.Tokens(tt.text, 100) {
			got = append(got, x.Word+" "+tt.text[x.Start:x.End])
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q has tokens %q, want %q", tt.text, got, tt.want)
		}
		for n := range tt.want { // the caller may stop after any token
			seen := 0
			for range bm25.Tokens(tt.text, 100) {
				if seen++; seen > n {
					break
				}
			}
		}
	}
	long := "aaaa" + strings.Repeat("\ufdfa", 19) // each of these becomes 18 characters
	for x := range bm25.Tokens(long, 100) {
		if len(x.Word) > 64 {
			t.Errorf("a word has %d bytes", len(x.Word))
		}
	}
	for x := range bm25.Tokens("one two", 3) {
		if x.Word != "one" {
			t.Errorf("got %q from the first three characters", x.Word)
		}
	}
}
