package bm25_test

import (
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/internal/bm25"
)

func TestShared(t *testing.T) {
	for _, tt := range []struct {
		text, other string
		want        []string
	}{
		{"Please fill in the forms of this PDF, all forms.", "pdf: Fills forms and reads PDFs.", []string{"fill", "forms", "pdf"}},
		{"What is the tide?", "ships: Knows what ships are.", nil},
		{"请填写表格", "填写 PDF 表格", []string{"填写", "表格"}},
		{"", "anything", nil},
	} {
		if got := bm25.SharedWords(tt.text, tt.other); !slices.Equal(got, tt.want) {
			t.Errorf("%q and %q share %q, want %q", tt.text, tt.other, got, tt.want)
		}
	}
}
