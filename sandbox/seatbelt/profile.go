package seatbelt

import (
	"fmt"
	"strings"
)

// system are what programs of macOS need to start, read-only. /opt/homebrew and
// /usr/local are where people's interpreters are.
var system = []string{
	"/usr/bin", "/usr/lib", "/usr/libexec", "/usr/sbin", "/usr/share", "/usr/local", "/bin", "/sbin", "/System", "/Library/Apple", "/Library/Frameworks",
	"/Library/Developer/CommandLineTools", "/Applications/Xcode.app/Contents/Developer", "/opt/homebrew", "/opt/local",
	"/private/etc/ssl", "/private/etc/localtime", "/private/var/db/timezone", "/private/var/db/dyld", "/private/var/select",
}

// devices may be read and written.
var devices = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}

// access is what a profile lets code do.
type access struct {
	read  []string // directories and files to read and to execute from
	write []string // directories to change
	proxy uint16   // a port of 127.0.0.1 to connect to; 0 is none
	host  bool     // the host's whole network
}

// profile is the text of a profile, in the language of sandbox-exec. What it
// does not name is denied. The paths in it must be without links, as the kernel
// compares them with what links lead to.
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
	line("(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))") // names of users
	line("(allow file-read-metadata)")                                                    // of all names: programs look at what leads to their files
	line("(allow file-read-data (literal \"/\"))")
	if err := rule(&s, "(allow file-read* file-map-executable process-exec*", append(append(system[:len(system):len(system)], a.read...), a.write...), "subpath"); err != nil {
		return "", err
	}
	if err := rule(&s, "(allow file-write*", a.write, "subpath"); err != nil {
		return "", err
	}
	if err := rule(&s, "(allow file-read* file-write-data file-ioctl", devices, "literal"); err != nil {
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

// rule writes one rule for several paths.
func rule(s *strings.Builder, head string, paths []string, filter string) error {
	if len(paths) == 0 {
		return nil
	}
	s.WriteString(head)
	for _, p := range paths {
		q, err := quote(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(s, "\n    (%s %s)", filter, q)
	}
	s.WriteString(")\n")
	return nil
}

// quote makes a string of the profile language, in which nothing ends it early.
// Paths that would need more than that are refused.
func quote(p string) (string, error) {
	if !strings.HasPrefix(p, "/") || p == "/" {
		return "", fmt.Errorf("%q cannot be in a profile: it is not an absolute path below the root", p)
	}
	for _, r := range p {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return "", fmt.Errorf("%q cannot be in a profile: it has a control character or is not UTF-8", p)
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p) + `"`, nil
}
