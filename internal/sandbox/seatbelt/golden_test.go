//go:build darwin || linux

package seatbelt

import (
	"os"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/sandbox"
)

// A program needs every one of these rights, and must have no other.
func TestProfileHasTheseRules(t *testing.T) {
	text, err := profile(access{read: []string{"/r"}, write: []string{"/w"}, host: true, proxy: 4711})
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "(") { // the paths of a rule are indented
			rules = append(rules, strings.TrimSpace(line))
		}
	}
	want := `(version 1)
(deny default)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read-metadata)
(allow file-read-data (literal "/"))
(allow file-read* file-map-executable process-exec*
(allow file-write*
(allow file-read* file-write-data file-ioctl
(deny file-write-setugid)
(allow network*)
(allow system-socket)
(allow network-outbound (remote ip "localhost:4711"))`
	if got := strings.Join(rules, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := profile(access{read: []string{"relative"}}); err == nil {
		t.Error("a relative path to read was taken")
	}
}

func TestOptions(t *testing.T) {
	if b := New(nil); b.opts.UID != -2 {
		t.Errorf("the default user is %d", b.opts.UID)
	}
	if b := New(&Options{UID: 7, Dir: "/d"}); b.opts.UID != 7 || b.opts.Dir != "/d" {
		t.Errorf("options %+v", b.opts)
	}
}

// Symlinks are resolved, because the kernel compares real paths; other paths stay.
func TestResolveSymlinks(t *testing.T) {
	dir, err := os.MkdirTemp(t.TempDir(), "real")
	if err != nil {
		t.Fatal(err)
	}
	link := dir + "-link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	a := access{read: []string{link, "/no/such/path"}, write: []string{link}, proxy: 1, host: true}.resolveSymlinks()
	if !strings.HasSuffix(a.read[0], dir) || a.read[1] != "/no/such/path" || !strings.HasSuffix(a.write[0], dir) || a.proxy != 1 || !a.host {
		t.Errorf("resolved %+v", a)
	}
}

// What is not enforced is not claimed.
func TestEnforcedLayers(t *testing.T) {
	for want, n := range map[string]sandbox.Network{"Seatbelt": {}, "Seatbelt, allowlist proxy": {Allow: []string{"example.com"}}, "": {Host: true}} {
		e := enforcedLayers(&sandbox.Spec{Network: n})
		if e["network"] != want || e["memory"] != "" || e["filesystem"] != "Seatbelt" {
			t.Errorf("network %+v: %v", n, e)
		}
	}
}

func TestInvalidSpecIsNotStarted(t *testing.T) {
	b := New(&Options{Dir: t.TempDir()})
	if s, err := b.start(&sandbox.Spec{Trees: []sandbox.Tree{{Path: "/etc"}}}, "/usr/bin/sandbox-exec"); err == nil || s != nil {
		t.Errorf("started with %v", err)
	}
}
