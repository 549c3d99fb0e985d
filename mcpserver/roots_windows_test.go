package mcpserver

import "testing"

// Windows signs in to the machine of a share to read it.
func TestRootsOnSharesAreRefused(t *testing.T) {
	for _, uri := range []string{"file:////server/share/dir", "file:///%5C%5Cserver/share", "file://localhost//server/share", "file:///%5C%5C?%5CUNC%5Cserver%5Cshare"} {
		if dir, err := rootDir(uri); err == nil {
			t.Errorf("%s is %s", uri, dir)
		}
	}
	if dir, err := rootDir("file:///C:/dir"); err != nil || dir != `C:\dir` {
		t.Errorf("%s, %v", dir, err)
	}
}
