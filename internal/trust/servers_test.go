package trust

import "testing"

func TestSandboxPaths(t *testing.T) {
	at := projectSnapshot{path: "/link", Project: &Project{Dir: "/home/ann/repo"}}
	for text, want := range map[string]string{
		"":                              "",
		"/home/ann/repo":                "/workspace",
		"/home/ann/repo/x.py":           "/workspace/x.py",
		"--in=/home/ann/repo/a":         "--in=/workspace/a",
		"/home/ann/repo:/home/ann/repo": "/workspace:/workspace",
		"/home/ann/repo2/x":             "/home/ann/repo2/x",
		"/mnt/home/ann/repo/x":          "/mnt/home/ann/repo/x",
		"/link/x":                       "/workspace/x",
		"server.py":                     "server.py",
	} {
		if got := at.sandboxPath(text); got != want {
			t.Errorf("sandboxPath(%q) = %q, want %q", text, got, want)
		}
	}
	for dir, want := range map[string]string{"": "", ".": "", "sub": "sub", "/home/ann/repo/a/b": "a/b", "/link": ""} {
		if got, err := at.sandboxSubdir(dir); err != nil || got != want {
			t.Errorf("sandboxSubdir(%q) = %q, %v, want %q", dir, got, err, want)
		}
	}
	for _, dir := range []string{"..", "/etc", "/home/ann", "sub/../../x"} {
		if got, err := at.sandboxSubdir(dir); err == nil {
			t.Errorf("sandboxSubdir(%q) = %q, want an error", dir, got)
		}
	}
}
