//go:build unix

package hub_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests that the documentation names for each fault are there.
func TestListedFaultsAreTested(t *testing.T) {
	page := string(must(os.ReadFile("../../docs/hub.md"))(t))
	_, section, ok := strings.Cut(page, "\n## Fault tests\n")
	if !ok {
		t.Fatal("no such list")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	named := 0
	for _, in := range regexp.MustCompile("`([a-z/]+)` (Test\\w+(?:, Test\\w+)*)").FindAllStringSubmatch(section, -1) {
		var source strings.Builder
		for _, file := range must(filepath.Glob(filepath.Join("../..", in[1], "*_test.go")))(t) {
			source.Write(must(os.ReadFile(file))(t))
		}
		for name := range strings.SplitSeq(in[2], ", ") {
			if named++; !strings.Contains(source.String(), "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s has no %s", in[1], name)
			}
		}
	}
	if named < 12 {
		t.Errorf("%d tests are named", named)
	}
}
