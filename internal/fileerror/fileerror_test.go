package fileerror_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/fileerror"
)

func TestCause(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	_, failed := os.Open(none)
	for name, err := range map[string]error{
		"open":   failed,
		"rename": fmt.Errorf("move: %w", os.Rename(none, none+"2")),
	} {
		if cause := fileerror.Cause(err); !errors.Is(cause, fs.ErrNotExist) || strings.Contains(cause.Error(), none) {
			t.Errorf("%s: cause %v", name, cause)
		}
	}
	other := errors.New("disk on fire")
	if cause := fileerror.Cause(other); cause != other {
		t.Errorf("cause of another error: %v", cause)
	}
	if fileerror.Cause(nil) != nil {
		t.Error("nil has a cause")
	}
}
