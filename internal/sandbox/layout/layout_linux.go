// Package layout defines the file system view of a sandbox that has its own
// mounts. The backends native and bwrap create the same view. Other backends
// use the lists of host paths for access rules.
package layout

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// systemDirs lists the host directories that contain programs. A symlink on the
// host becomes a symlink in the sandbox.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// etcFiles lists the entries of /etc that programs need. None of them is
// secret.
var etcFiles = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "mime.types", "magic", "fonts", "ssl/certs", "ssl/openssl.cnf",
	"ca-certificates", "pki/tls/certs", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "crypto-policies", "perl", "php", "ImageMagick-*", "java-*", "python3*", "texmf", "protocols", "services",
}

// LandlockMinABI is the first Landlock ABI version that also restricts signals
// and abstract sockets.
const LandlockMinABI = 6

// devices lists the devices that are safe to expose to sandboxed code.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// View returns the file system view of a sandbox, without its read-only trees.
func View(spec *sandbox.Spec, l sandbox.Limits) stage.Setup {
	s := stage.Setup{Root: true, Proc: true, Hostname: "loadout", Loopback: !spec.Network.Host}
	addSystem(&s)
	s.Tmpfs = []stage.Tmpfs{
		{Path: "/dev", Size: 64 << 10, Mode: 0o755},
		{Path: "/dev/shm", Size: l.Shm, Inodes: l.Inodes, Mode: 0o1777},
		{Path: mountpoint.Tmp, Size: l.Tmp, Inodes: l.Inodes, Mode: 0o1777},
	}
	work := stage.Tmpfs{Path: mountpoint.Work, Size: l.Work, Inodes: l.Inodes, Mode: 0o755}
	for _, t := range spec.Trees {
		if prepare.IsWritable(t.Path) {
			size, inodes := launcher.TreeSize(&t)
			if t.Path == mountpoint.Work { // the size of a working directory is fixed between runs
				work.Size, work.Inodes = max(work.Size, size), max(work.Inodes, inodes)
			} else {
				work.Size, work.Inodes = work.Size+size, work.Inodes+inodes
			}
		}
	}
	s.Tmpfs = append(s.Tmpfs, work)
	s.Dirs = []string{mountpoint.In, mountpoint.Out}
	for _, m := range spec.Mounts {
		fi, err := os.Stat(m.Host)
		s.Binds = append(s.Binds, stage.Bind{Host: m.Host, Path: m.Path, Writable: m.Writable, File: err == nil && !fi.IsDir()})
	}
	if len(spec.Secrets) > 0 {
		s.Tmpfs = append(s.Tmpfs, stage.Tmpfs{Path: mountpoint.Secrets, Size: 1 << 20, Inodes: 256, Mode: 0o755})
		for _, sec := range spec.Secrets {
			s.Files = append(s.Files, stage.Text{Path: mountpoint.Secrets + "/" + sec.Name, Data: sec.Reveal(), Mode: 0o400})
		}
	}
	if spec.Network.Host {
		for _, name := range []string{"resolv.conf", "hosts", "nsswitch.conf"} {
			s.Binds = append(s.Binds, hostFile("/etc/"+name)...)
		}
	} else {
		s.Files = append(s.Files, stage.Text{Path: "/etc/resolv.conf", Mode: 0o644},
			stage.Text{Path: "/etc/hosts", Data: "127.0.0.1 localhost loadout\n::1 localhost\n", Mode: 0o644},
			stage.Text{Path: "/etc/nsswitch.conf", Data: "passwd: files\ngroup: files\nhosts: files dns\n", Mode: 0o644})
	}
	return s
}

// Readable returns the existing host files and directories that View exposes.
func Readable() []string {
	var s stage.Setup
	addSystem(&s)
	var out []string
	for _, b := range s.Binds {
		if !strings.HasPrefix(b.Path, "/dev/") {
			out = append(out, b.Host)
		}
	}
	return out
}

// ReadDevice is the device of View that code must not open for writing: a
// shared mapping of it is shared anonymous memory, which seccomp denies.
const ReadDevice = "/dev/zero"

// WriteDevices returns the devices of View that code may open for writing.
func WriteDevices() []string {
	var out []string
	for _, d := range devices {
		if p := "/dev/" + d; p != ReadDevice {
			out = append(out, p)
		}
	}
	return out
}

// addSystem adds the host's programs and the files they need.
func addSystem(s *stage.Setup) {
	for _, dir := range systemDirs {
		fi, err := os.Lstat(dir)
		switch {
		case err != nil:
		case fi.Mode()&os.ModeSymlink != 0:
			if target, err := os.Readlink(dir); err == nil {
				s.Links = append(s.Links, stage.Link{Path: dir, Target: target})
			}
		default:
			s.Binds = append(s.Binds, stage.Bind{Host: dir, Path: dir})
		}
	}
	for _, name := range etcFiles {
		found := []string{"/etc/" + name}
		if strings.Contains(name, "*") {
			found, _ = filepath.Glob(found[0])
		}
		for _, p := range found {
			s.Binds = append(s.Binds, hostFile(p)...)
		}
	}
	for _, d := range devices {
		s.Binds = append(s.Binds, stage.Bind{Host: "/dev/" + d, Path: "/dev/" + d, File: true})
	}
	for _, l := range [][2]string{{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"}, {"/etc/mtab", "/proc/self/mounts"}} {
		s.Links = append(s.Links, stage.Link{Path: l[0], Target: l[1]})
	}
	s.Files = append(s.Files,
		stage.Text{Path: "/etc/passwd", Data: "loadout:x:1000:1000::/work:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n", Mode: 0o644},
		stage.Text{Path: "/etc/group", Data: "loadout:x:1000:\nnogroup:x:65534:\n", Mode: 0o644})
}

// hostFile returns a bind of a host file or directory to the same path, or nil
// if it does not exist.
func hostFile(path string) []stage.Bind {
	fi, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return []stage.Bind{{Host: path, Path: path, File: !fi.IsDir(), Optional: true, NoExec: true}}
}

// ReadOnly returns the mounts that are made read-only after files are written
// to them.
func ReadOnly(s *stage.Setup) []string {
	out := []string{"/dev"}
	for _, t := range s.Tmpfs {
		switch t.Path {
		case "/dev", "/dev/shm", mountpoint.Tmp, mountpoint.Work:
		default:
			out = append(out, t.Path)
		}
	}
	return append(out, "/")
}

// Rules returns Landlock rules that duplicate the restrictions of the view, in
// case a mount is wrong.
func Rules(s *stage.Setup) *stage.Landlock {
	l := &stage.Landlock{Least: LandlockMinABI, Read: []string{"/"}, Write: []string{mountpoint.Work, mountpoint.Tmp, "/dev/shm"}, Files: WriteDevices()}
	for _, b := range s.Binds {
		if b.Writable {
			l.Write = append(l.Write, b.Path)
		}
	}
	if s.Overlay != nil {
		l.Write = append(l.Write, s.Overlay.Path)
	}
	return l
}
