//go:build linux

package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/kernelfile"
	"github.com/loadout-dev/loadout/internal/procstat"
	"github.com/loadout-dev/loadout/internal/sandbox/cgroup"
	"github.com/loadout-dev/loadout/internal/sandbox/fileid"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// Key returns a hash of everything on which the result of [Run] is known to depend:
// the backend with its options, the programs, and what the kernel permits this
// process. If the keys of two probes are equal and the first one succeeded, the
// second one would succeed too, unless the policy of a security module has changed.
//
// options are the options of the backend, and programs the paths of the programs that
// it starts; "" means the current executable. Key returns an error if a part cannot
// be read or compared. In that case, the caller must probe. Options must not contain
// pointers or functions, whose addresses differ between processes.
func Key(b sandbox.Backend, programs []string, options ...any) (string, error) {
	h := &keyHash{Hash: sha256.New()}
	h.add("backend", fmt.Sprintf("%s %+v", b.Name(), options))
	h.add("environment", fmt.Sprintf("%q %q", os.Getenv("HOME"), os.Getenv("TMPDIR"))) // the canary is in one of them, or in /var/tmp
	for _, p := range programs {
		h.addProgram(p)
	}
	h.add("Landlock", fmt.Sprint(stage.LandlockABI()))
	bits, err := unix.PrctlRetInt(unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
	h.fail(err)
	h.add("securebits", fmt.Sprint(bits))
	h.addMachine("/")
	if h.err != nil {
		return "", fmt.Errorf("describe the machine for sandbox %s: %w", b.Name(), h.err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Files and links that describe the kernel and the rights of this process. A
// missing one means that there is no key.
var (
	requiredFiles = []string{
		"proc/sys/kernel/osrelease", "proc/sys/kernel/version", "proc/sys/kernel/random/boot_id",
		"proc/self/cgroup", "proc/self/uid_map", "proc/self/gid_map",
	}
	requiredLinks = []string{
		"proc/self/root", "proc/self/ns/cgroup", "proc/self/ns/ipc", "proc/self/ns/mnt", "proc/self/ns/net", "proc/self/ns/pid", "proc/self/ns/user", "proc/self/ns/uts",
	}
)

// optionalFiles exist only with some kernels and security modules.
var optionalFiles = []string{
	"proc/self/setgroups", "proc/self/attr/current", "proc/sys/kernel/unprivileged_userns_clone",
	"proc/sys/kernel/apparmor_restrict_unprivileged_userns", "proc/sys/kernel/apparmor_restrict_unprivileged_userns_complain",
	"proc/sys/kernel/apparmor_restrict_unprivileged_unconfined", "proc/sys/kernel/unprivileged_userns_apparmor_policy",
	"proc/sys/kernel/yama/ptrace_scope", "proc/sys/kernel/seccomp/actions_avail", "sys/kernel/security/lsm", "sys/fs/selinux/enforce",
}

// keyHash hashes named values. The first failure is its error.
type keyHash struct {
	hash.Hash
	err error
}

func (h *keyHash) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

func (h *keyHash) add(name, value string) {
	fmt.Fprintf(h, "%d %s %d %s\n", len(name), name, len(value), value)
}

// addProgram adds the metadata of a program and the start of the file, which
// contains the build ID of a Go program.
func (h *keyHash) addProgram(path string) {
	if path == "" {
		path = "/proc/self/exe"
	}
	f, err := os.Open(path)
	if err != nil {
		h.fail(err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		h.fail(err)
		return
	}
	id, _ := fileid.Of(info)
	start := make([]byte, 8<<10)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		h.fail(fmt.Errorf("read %s: %w", path, err))
	}
	h.add("program "+path, fmt.Sprintf("%+v %x", id, start[:n]))
}

// addMachine adds the state of the kernel and of this process, from the files
// below root.
func (h *keyHash) addMachine(root string) {
	for _, name := range requiredFiles {
		h.addFile(root, name, false)
	}
	for _, name := range requiredLinks {
		target, err := os.Readlink(filepath.Join(root, name))
		h.fail(err)
		h.add(name, target)
	}
	for _, name := range optionalFiles {
		h.addFile(root, name, true)
	}
	limits, err := os.ReadDir(filepath.Join(root, "proc/sys/user")) // such as max_user_namespaces
	if !errors.Is(err, fs.ErrNotExist) {
		h.fail(err)
	}
	for _, e := range limits {
		if strings.HasSuffix(e.Name(), "_namespaces") {
			h.addFile(root, "proc/sys/user/"+e.Name(), true)
		}
	}
	h.addStatus(root)
	h.addMounts(root)
	h.addInit(root)
	h.addGroups(root)
}

// addFile adds the content of a file. A missing optional file is hashed as missing.
func (h *keyHash) addFile(root, name string, optional bool) {
	b, err := readSmall(root, name)
	if optional && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL)) { // EINVAL: no security module
		h.add(name, "missing")
		return
	}
	h.fail(err)
	h.add(name, "is "+string(b))
}

// readSmall reads a file below root of at most 1 MiB.
func readSmall(root, name string) ([]byte, error) {
	const most = 1 << 20
	b, err := kernelfile.ReadFile(filepath.Join(root, name))
	if err == nil && len(b) > most {
		err = fmt.Errorf("%s too large (limit %d bytes)", name, most)
	}
	return b, err
}

// statusLines are the lines of /proc/self/status with the user, the
// capabilities and no_new_privs.
var statusLines = []string{"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"}

// addStatus adds the rights of this process. With a seccomp filter there is no
// key: its rules cannot be read, and could make calls seem to succeed.
func (h *keyHash) addStatus(root string) {
	b, err := readSmall(root, "proc/self/status")
	h.fail(err)
	found := 0
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		if !slices.Contains(statusLines, name) {
			continue
		}
		found++
		value = strings.TrimSpace(value)
		h.add("status "+name, value)
		if name == "Seccomp" && value != "0" {
			h.fail(errors.New("a seccomp filter is active, whose rules cannot be compared"))
		}
	}
	if found < len(statusLines)-1 { // a kernel without seccomp has no such line
		h.fail(errors.New("/proc/self/status is incomplete"))
	}
}

// addMounts adds the mounts that the kernel and the control groups depend on.
// Others change often, and have no effect.
func (h *keyHash) addMounts(root string) {
	b, err := readSmall(root, "proc/self/mountinfo")
	h.fail(err)
	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(kind) == 0 {
			h.fail(fmt.Errorf("invalid line in /proc/self/mountinfo: %.100q", line))
			return
		}
		at := f[4]
		if at == "/" || isBelow(at, "/proc") || isBelow(at, "/sys") || slices.Contains([]string{"proc", "sysfs", "cgroup", "cgroup2"}, kind[0]) {
			h.add("mount", line)
		}
	}
}

func isBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// addInit adds the start time of the first process, which distinguishes
// containers whose namespaces get the same numbers one after the other.
func (h *keyHash) addInit(root string) {
	b, err := readSmall(root, "proc/1/stat")
	h.fail(err)
	_, start := procstat.Parse(string(b))
	if start == "" {
		h.fail(errors.New("cannot read the start time in /proc/1/stat"))
		return
	}
	h.add("start of the first process", start)
}

// addGroups adds what this process can do in the control groups in which those
// of sandboxes are created.
func (h *keyHash) addGroups(root string) {
	for _, dir := range cgroup.Parents(filepath.Join(root, "proc/self/mountinfo"), filepath.Join(root, "proc/self/cgroup")) {
		var st unix.Stat_t
		switch err := unix.Stat(filepath.Join(root, dir), &st); {
		case errors.Is(err, fs.ErrNotExist):
			h.add("control group "+dir, "missing")
			continue
		case err != nil:
			h.fail(err)
		}
		h.add("control group "+dir, fmt.Sprint(st.Uid, st.Gid, st.Mode))
		for _, name := range []string{"cgroup.controllers", "cgroup.max.descendants", "cgroup.max.depth"} { // of version 2
			h.addFile(root, filepath.Join(dir, name), true)
		}
	}
}
