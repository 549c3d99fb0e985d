package bwrap

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/layout"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// sandboxID is the user and group ID of processes in the sandbox.
const sandboxID = "1000"

// stagePath is the path of the stage in the sandbox.
const stagePath = "/run/loadout/" + stage.Name

// firstFile is the first file descriptor after the socket.
const firstFile = stage.ControlFD + 1

// arguments returns the bubblewrap arguments that create the view and start the
// stage. texts are the contents of small files, which bubblewrap reads from
// descriptors starting at firstFile. The next descriptor is for its status
// output.
//
// It does not use --die-with-parent. If bubblewrap is killed before it releases
// its child, the child would wait forever, because it holds a write end of the
// pipe itself (https://github.com/containers/bubblewrap/issues/633). Without
// the option, bubblewrap continues after this program is killed. The stage then
// exits because its socket is closed, and as the first process of its namespace
// it ends the sandbox.
func arguments(p *program, s *stage.Setup, spec *sandbox.Spec, exe string) (args []string, texts []string) {
	add := func(words ...string) { args = append(args, words...) }
	add("--unshare-user", "--unshare-all")
	if spec.Network.Host {
		add("--share-net")
	}
	if p.atLeast(0, 8) {
		add("--disable-userns")
	}
	add("--uid", sandboxID, "--gid", sandboxID, "--hostname", s.Hostname, "--cap-drop", "ALL", "--new-session", "--as-pid-1")
	add("--clearenv")
	for _, kv := range launcher.Environment() {
		name, value, _ := strings.Cut(kv, "=")
		add("--setenv", name, value)
	}
	for _, t := range s.Tmpfs {
		add("--perms", fmt.Sprintf("%04o", t.Mode), "--size", strconv.FormatInt(t.Size, 10), "--tmpfs", t.Path)
	}
	add("--proc", "/proc")
	for _, f := range hiddenFiles {
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

// hiddenFiles are files in /proc that reveal information about the host.
var hiddenFiles = []string{"/proc/kcore", "/proc/keys", "/proc/kallsyms", "/proc/kmsg", "/proc/config.gz", "/proc/timer_list", "/proc/sched_debug", "/proc/sysrq-trigger"}

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

// textFile returns an in-memory file that bubblewrap can read.
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
