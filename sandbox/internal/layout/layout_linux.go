// Package layout is the view that code has in a sandbox with mounts of its own,
// the same whoever makes it: native by itself, bwrap by arguments. Its lists say
// what of the host is shown, for back ends with access rules alone too.
package layout

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/staged"
)

// system are the directories of the host that programs are in. Where one is a
// link, as on most systems all but /usr, it is a link in the sandbox.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// settings are the parts of /etc that programs need to run. Nothing of them is
// secret.
var settings = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "mime.types", "magic", "fonts", "ssl/certs", "ssl/openssl.cnf",
	"ca-certificates", "pki/tls/certs", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "crypto-policies", "perl", "php", "ImageMagick-*", "java-*", "python3*", "texmf", "protocols", "services",
}

// LandlockLeast is the version of Landlock with which signals and abstract
// sockets are bounded too.
const LandlockLeast = 6

// devices are harmless.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// View is the file system of a sandbox, but for its read-only trees.
func View(spec *sandbox.Spec, l sandbox.Limits) stage.Setup {
	s := stage.Setup{Root: true, Proc: true, Hostname: "loadout", Loopback: spec.Network.Mode != sandbox.HostNetwork}
	hostSystem(&s)
	s.Tmpfs = []stage.Tmpfs{
		{Path: "/dev", Size: 64 << 10, Mode: 0o755},
		{Path: "/dev/shm", Size: l.Shm, Inodes: l.Inodes, Mode: 0o1777},
		{Path: sandbox.TmpDir, Size: l.Tmp, Inodes: l.Inodes, Mode: 0o1777},
	}
	work := stage.Tmpfs{Path: sandbox.WorkDir, Size: l.Work, Inodes: l.Inodes, Mode: 0o755}
	for _, t := range spec.Trees {
		if t.Writable() {
			size, inodes := staged.TreeSize(&t)
			if t.Path == sandbox.WorkDir { // it does not grow from run to run
				work.Size, work.Inodes = max(work.Size, size), max(work.Inodes, inodes)
			} else {
				work.Size, work.Inodes = work.Size+size, work.Inodes+inodes
			}
		}
	}
	s.Tmpfs = append(s.Tmpfs, work)
	s.Dirs = []string{sandbox.InDir, sandbox.OutDir}
	for _, m := range spec.Mounts {
		fi, err := os.Stat(m.Host)
		s.Binds = append(s.Binds, stage.Bind{Host: m.Host, Path: m.Path, Writable: m.Writable, File: err == nil && !fi.IsDir()})
	}
	if len(spec.Secrets) > 0 {
		s.Tmpfs = append(s.Tmpfs, stage.Tmpfs{Path: sandbox.SecretsDir, Size: 1 << 20, Inodes: 256, Mode: 0o755})
		for _, sec := range spec.Secrets {
			s.Files = append(s.Files, stage.Text{Path: sandbox.SecretsDir + "/" + sec.Name, Data: sec.Reveal(), Mode: 0o400})
		}
	}
	if spec.Network.Mode == sandbox.HostNetwork {
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

// Readable are the files and directories of the host that View shows, where
// they are there.
func Readable() []string {
	var s stage.Setup
	hostSystem(&s)
	var out []string
	for _, b := range s.Binds {
		if !strings.HasPrefix(b.Path, "/dev/") {
			out = append(out, b.Host)
		}
	}
	return out
}

// Devices are the devices that View shows.
func Devices() []string {
	out := make([]string, len(devices))
	for i, d := range devices {
		out[i] = "/dev/" + d
	}
	return out
}

// hostSystem adds the programs of the host and what they need.
func hostSystem(s *stage.Setup) {
	for _, dir := range system {
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
	for _, name := range settings {
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

// hostFile is a file or directory of the host at its own place, if it is there.
func hostFile(path string) []stage.Bind {
	fi, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return []stage.Bind{{Host: path, Path: path, File: !fi.IsDir(), Optional: true, NoExec: true}}
}

// ReadOnly are the mounts that are closed once their files are there.
func ReadOnly(s *stage.Setup) []string {
	out := []string{"/dev"}
	for _, t := range s.Tmpfs {
		switch t.Path {
		case "/dev", "/dev/shm", sandbox.TmpDir, sandbox.WorkDir:
		default:
			out = append(out, t.Path)
		}
	}
	return append(out, "/")
}

// Rules say the same again to Landlock: should a mount be other than meant,
// they still hold.
func Rules(s *stage.Setup) *stage.Landlock {
	l := &stage.Landlock{Least: LandlockLeast, Read: []string{"/"}, Write: []string{sandbox.WorkDir, sandbox.TmpDir, "/dev/shm"}}
	for _, d := range devices {
		l.Files = append(l.Files, "/dev/"+d)
	}
	for _, b := range s.Binds {
		if b.Writable {
			l.Write = append(l.Write, b.Path)
		}
	}
	return l
}
