package seatbelt

import (
	"fmt"
	"strings"
)

// systemPaths lists the read-only paths that programs need to start on macOS.
// Interpreters are often in /opt/homebrew and /usr/local.
var systemPaths = []string{
	"/usr/bin", "/usr/lib", "/usr/libexec", "/usr/sbin", "/usr/share", "/usr/local", "/bin", "/sbin", "/System", "/Library/Apple", "/Library/Frameworks",
	"/Library/Developer/CommandLineTools", "/Applications/Xcode.app/Contents/Developer", "/opt/homebrew", "/opt/local",
	"/private/etc/ssl", "/private/etc/localtime", "/private/var/db/timezone", "/private/var/db/dyld", "/private/var/select",
}

// devices lists the devices that may be read and written.
var devices = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}

// access describes what a profile permits.
type access struct {
	read  []string // readable and executable paths
	write []string // writable directories
	proxy uint16   // port of the proxy on 127.0.0.1; 0 means no proxy
	host  bool     // whether network access is unrestricted
}

// profile returns a profile for sandbox-exec that permits only the access in a.
// The paths must not contain symlinks, because the kernel compares resolved
// paths.
func profile(a access) (string, error) {
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	line("(version 1)")
	line("(deny default)")
	line("(allow process-fork)")
	line("(allow signal (target same-sandbox))")
	line("(allow process-info* (target same-sandbox))")
	line("(allow sysctl-read)")
	line("(allow ipc-posix-sem)")
	line("(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))") // user names
	line("(allow file-read-metadata)")                                                    // for all names, because programs inspect parent directories
	line("(allow file-read-data (literal \"/\"))")
	if err := writeRule(&s, "(allow file-read* file-map-executable process-exec*", append(append(systemPaths[:len(systemPaths):len(systemPaths)], a.read...), a.write...), "subpath"); err != nil {
		return "", err
	}
	if err := writeRule(&s, "(allow file-write*", a.write, "subpath"); err != nil {
		return "", err
	}
	if err := writeRule(&s, "(allow file-read* file-write-data file-ioctl", devices, "literal"); err != nil {
		return "", err
	}
	line("(deny file-write-setugid)")
	if a.host {
		line("(allow network*)")
		line("(allow system-socket)")
	}
	if a.proxy != 0 {
		line("(allow network-outbound (remote ip \"localhost:%d\"))", a.proxy)
	}
	return s.String(), nil
}

// writeRule appends a profile rule for several paths.
func writeRule(s *strings.Builder, head string, paths []string, filter string) error {
	if len(paths) == 0 {
		return nil
	}
	s.WriteString(head)
	for _, p := range paths {
		q, err := quotePath(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(s, "\n    (%s %s)", filter, q)
	}
	s.WriteString(")\n")
	return nil
}

// quotePath quotes a path for a profile. It returns an error if the path needs more
// than simple escapes.
func quotePath(p string) (string, error) {
	if !strings.HasPrefix(p, "/") || p == "/" {
		return "", fmt.Errorf("path %q not allowed in a profile: must be absolute and below the root", p)
	}
	for _, r := range p {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return "", fmt.Errorf("path %q not allowed in a profile: contains a control character or is not UTF-8", p)
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p) + `"`, nil
}
