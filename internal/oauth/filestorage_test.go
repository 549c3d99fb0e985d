package oauth_test

import (
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/oauth/oauthtest"
)

func TestFileStorage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "oauth")
	oauthtest.TestStorage(t, func() oauth.Storage { return oauth.FileStorage(dir) })
}
