package exit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestErrorf(t *testing.T) {
	err := fmt.Errorf("add: %w", Errorf(NotFound, "check the path", "open %s: %w", "x", fs.ErrNotExist))
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != NotFound || e.Hint != "check the path" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v", e)
	}
	if want := "add: open x: file does not exist"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestFileErrors(t *testing.T) {
	_, err := os.Open(filepath.Join(t.TempDir(), "none"))
	if code, hint := FileHint(err, "the path"); code != NotFound || hint != "check the path" {
		t.Errorf("%d %q", code, hint)
	}
	other := errors.New("disk on fire")
	if code, hint := FileHint(other, "the path"); code != Failure || hint != "check the path" {
		t.Errorf("%d %q for another error", code, hint)
	}
	if code, _ := FileHint(fs.ErrPermission, "the path"); code != Failure {
		t.Errorf("exit code %d without permission", code)
	}
}

func TestReportedErrorHasText(t *testing.T) {
	if got := Reported.Error(); got != "problem already reported" {
		t.Errorf("got %q", got)
	}
}
