package bwrap

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/layout"
	"github.com/loadout-dev/loadout/sandbox/internal/staged"
)

// inside is the user and group that code is in its sandbox.
const inside = "1000"

// stagePath is where the stage is in a sandbox.
const stagePath = "/run/loadout/" + stage.Name

// firstFile is the descriptor of the first extra file, after the socket.
const firstFile = stage.ControlFD + 1

// arguments are those by which bubblewrap makes the view and starts the stage in
// it. texts are the contents of small files, in the order of their descriptors
// from firstFile on. The descriptor after them is for what it says of itself.
//
// There is no --die-with-parent: bubblewrap that ends between making its child
// and letting it go on leaves it waiting for ever, as the descriptor that the
// child reads is its own too (https://github.com/containers/bubblewrap/issues/633).
// So bubblewrap goes on when this program has been killed, and the stage ends as
// soon as it reads that nobody is at the other end of its socket, and with it, as
// the first of its namespace, everything in the sandbox.
func arguments(p *program, s *stage.Setup, spec *sandbox.Spec, exe string) (args []string, texts []string) {
	add := func(words ...string) { args = append(args, words...) }
	add("--unshare-user", "--unshare-all")
	if spec.Network.Mode == sandbox.HostNetwork {
		add("--share-net")
	}
	if p.atLeast(0, 8) {
		add("--disable-userns")
	}
	add("--uid", inside, "--gid", inside, "--hostname", s.Hostname, "--cap-drop", "ALL", "--new-session", "--as-pid-1")
	add("--clearenv")
	for _, kv := range staged.Environment() {
		name, value, _ := strings.Cut(kv, "=")
		add("--setenv", name, value)
	}
	for _, t := range s.Tmpfs {
		add("--perms", fmt.Sprintf("%04o", t.Mode), "--size", strconv.FormatInt(t.Size, 10), "--tmpfs", t.Path)
	}
	add("--proc", "/proc")
	for _, f := range covered {
		if _, err := os.Lstat(f); err == nil {
			add("--ro-bind", "/dev/null", f)
		}
	}
	for _, b := range s.Binds {
		add(bindOption(&b), b.Host, b.Path)
	}
	add("--ro-bind", exe, stagePath)
	for _, d := range s.Dirs {
		add("--dir", d)
	}
	for _, l := range s.Links {
		add("--symlink", l.Target, l.Path)
	}
	for _, f := range s.Files {
		add("--perms", fmt.Sprintf("%04o", f.Mode), "--file", strconv.Itoa(firstFile+len(texts)), f.Path)
		texts = append(texts, f.Data)
	}
	for _, d := range layout.ReadOnly(s) {
		add("--remount-ro", d)
	}
	add("--info-fd", strconv.Itoa(firstFile+len(texts)), "--chdir", "/", "--", stagePath)
	return args, texts
}

// covered are files in /proc that are about the machine and for reading by
// nobody.
var covered = []string{"/proc/kcore", "/proc/keys", "/proc/kallsyms", "/proc/kmsg", "/proc/config.gz", "/proc/timer_list", "/proc/sched_debug", "/proc/sysrq-trigger"}

func bindOption(b *stage.Bind) string {
	option := "--ro-bind"
	switch {
	case strings.HasPrefix(b.Path, "/dev/"):
		option = "--dev-bind"
	case b.Writable:
		option = "--bind"
	}
	if b.Optional {
		option += "-try"
	}
	return option
}

// textFile is a file in memory with a text, to be read by bubblewrap.
func textFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("text", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "text")
	if _, err = f.WriteString(text); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
