package requirement_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/requirement"
)

func Test(t *testing.T) {
	for _, tt := range []struct {
		text             string
		released, direct bool
	}{
		{"pandas", true, false},
		{"pandas>=2.0.0", true, false},
		{"python-docx >= 1.1.0, < 2", true, false},
		{`requests[socks]~=2.0; python_version < "3.12"`, true, false},
		{"Python 3.8+", false, false},
		{"a working internet connection", false, false},
		{"--index-url=x", false, false},
		{"", false, false},
		{"x @ https://example.com/x.whl", false, true},
		{"git+https://example.com/x", false, true},
		{"./local", false, true},
		{"x.whl", true, true},
	} {
		if got := requirement.IsReleased(tt.text); got != tt.released {
			t.Errorf("IsReleased(%q) = %v", tt.text, got)
		}
		if got := requirement.IsDirect(tt.text); got != tt.direct {
			t.Errorf("IsDirect(%q) = %v", tt.text, got)
		}
	}
}
