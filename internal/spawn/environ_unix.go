//go:build unix

package spawn

var inheritedNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_*", "TMPDIR", "SHELL", "TERM",
	"XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME",
	"XDG_RUNTIME_DIR", "XDG_STATE_HOME",
}

func sameName(a, b string) bool { return a == b }
