package stage

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// stepError is the error of a failed setup step, with the step's name.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func wrapStep(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &stepError{fmt.Sprintf(format, args...), err}
}

// buildView creates the file system view of the sandbox and enters it. It
// returns the reason if an overlay cannot be mounted.
func (s *Setup) buildView() (noOverlay string, err error) {
	if s.Reap {
		if err := prctl(prSetSubreaper, 1, 0); err != nil {
			return "", wrapStep(err, "adopt orphans")
		}
	}
	var trees []int
	var overlay overlayTrees
	if s.Root {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			return "", wrapStep(err, "keep mounts private")
		}
		if trees, err = s.openMounts(); err != nil {
			return "", err
		}
		if s.Overlay != nil {
			if overlay, err = s.Overlay.openMounts(); err != nil {
				return "", err
			}
		}
	}
	if s.UID != 0 {
		if err := switchUser(s.UID); err != nil {
			return "", wrapStep(err, "become user %d", s.UID)
		}
	}
	if s.Root {
		if noOverlay, err = s.enterRoot(trees, overlay); err != nil {
			return "", err
		}
	}
	return noOverlay, s.configureHost()
}

// configureHost sets the host name and enables the loopback interface.
func (s *Setup) configureHost() error {
	if s.Hostname != "" {
		if err := syscall.Sethostname([]byte(s.Hostname)); err != nil {
			return wrapStep(err, "set the host name")
		}
	}
	if s.Loopback {
		if err := loopbackUp(); err != nil {
			return wrapStep(err, "bring up the loopback interface")
		}
	}
	return nil
}

// switchUser switches to another user. This is irreversible, because the
// previous user may have no ID in this namespace.
func switchUser(uid int) error {
	if syscall.Getuid() == uid && syscall.Getgid() == uid {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(uid, uid, uid); err != nil {
		return err
	}
	return syscall.Setresuid(uid, uid, uid)
}

// openMounts opens detached copies of the host's mounts. It must run before the
// process switches to another user, because that user may not be able to access
// them.
func (s *Setup) openMounts() ([]int, error) {
	trees := make([]int, len(s.Binds))
	for i, b := range s.Binds {
		trees[i] = -1
		fd, err := openTree(b.Host)
		if err == syscall.ENOENT && b.Optional {
			continue
		}
		if err != nil {
			return nil, wrapStep(err, "mount %s", b.Host)
		}
		attr := uint64(attrNoSUID | attrNoDev)
		if strings.HasPrefix(b.Path, "/dev/") {
			attr = attrNoSUID | attrNoExec
		}
		if !b.Writable {
			attr |= attrReadOnly
		}
		if b.NoExec {
			attr |= attrNoExec
		}
		if err := setAttr(fd, attr); err != nil {
			return nil, wrapStep(err, "protect the mount of %s", b.Host)
		}
		trees[i] = fd
	}
	return trees, nil
}

// enterRoot creates an in-memory root directory, fills it, and detaches the
// host's root. It returns the reason if an overlay cannot be mounted.
func (s *Setup) enterRoot(trees []int, overlay overlayTrees) (noOverlay string, err error) {
	const staging = "/tmp" // a directory that exists everywhere; it is only used as a mount point
	syscall.Umask(0)
	if err := syscall.Mount("tmpfs", staging, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755,size=4m,nr_inodes=4k"); err != nil {
		return "", wrapStep(err, "make a root directory")
	}
	for _, t := range s.Tmpfs {
		if err := t.mount(staging); err != nil {
			return "", wrapStep(err, "make %s", t.Path)
		}
	}
	if s.Proc {
		if err := mountProc(staging, s.Loopback); err != nil {
			return "", wrapStep(err, "mount /proc")
		}
	}
	for i, b := range s.Binds {
		if trees[i] < 0 {
			continue
		}
		at := staging + b.Path
		if err := makePoint(at, b.File); err != nil {
			return "", wrapStep(err, "make a mount point for %s", b.Path)
		}
		if err := moveMount(trees[i], at); err != nil {
			return "", wrapStep(err, "mount %s", b.Path)
		}
		syscall.Close(trees[i])
	}
	if s.Overlay != nil {
		if noOverlay, err = s.Overlay.mount(staging, overlay); err != nil {
			return "", err
		}
	}
	for _, d := range s.Dirs {
		if err := makePoint(staging+d, false); err != nil {
			return "", wrapStep(err, "make %s", d)
		}
	}
	for _, l := range s.Links {
		makeParents(staging + l.Path)
		if err := syscall.Symlink(l.Target, staging+l.Path); err != nil && err != syscall.EEXIST {
			return "", wrapStep(err, "link %s", l.Path)
		}
	}
	for _, f := range s.Files {
		if err := writeFile(staging+f.Path, f.Data, f.Mode); err != nil {
			return "", wrapStep(err, "write %s", f.Path)
		}
	}
	if err := syscall.Chdir(staging); err != nil {
		return "", wrapStep(err, "enter the root directory")
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return "", wrapStep(err, "change the root directory")
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return "", wrapStep(err, "detach the host's root directory")
	}
	return noOverlay, wrapStep(syscall.Chdir("/"), "enter the root directory")
}

func (t *Tmpfs) mount(root string) error {
	at := root + t.Path
	if err := makePoint(at, false); err != nil {
		return err
	}
	options := "mode=" + strconv.FormatUint(uint64(t.Mode), 8) + ",size=" + strconv.FormatInt(t.Size, 10)
	if t.Inodes > 0 {
		options += ",nr_inodes=" + strconv.Itoa(t.Inodes)
	}
	return syscall.Mount("tmpfs", at, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options)
}

// mountProc mounts a new /proc and hides the files that describe the machine.
// If the network namespace belongs to the sandbox, it first limits its buffers.
func mountProc(root string, ownNetwork bool) error {
	proc := root + "/proc"
	if err := makePoint(proc, false); err != nil {
		return err
	}
	if err := syscall.Mount("proc", proc, "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return err
	}
	if ownNetwork {
		if err := limitTCP(proc); err != nil {
			return err
		}
	}
	for _, p := range []string{"/sys", "/sysrq-trigger", "/irq", "/bus", "/fs"} {
		if err := coverPath(proc+p, proc+p); err != nil {
			return err
		}
	}
	for _, p := range []string{"/kcore", "/keys", "/kallsyms", "/kmsg", "/config.gz", "/timer_list", "/sched_debug"} {
		if err := coverPath("/dev/null", proc+p); err != nil {
			return err
		}
	}
	return nil
}

// limitTCP limits the buffers of TCP connections in this network namespace to
// the size of other sockets' buffers. The kernel itself limits them only per
// connection, to up to 32 MiB, and for the whole machine.
func limitTCP(proc string) error {
	for name, sizes := range map[string]string{"tcp_rmem": "4096 131072 212992", "tcp_wmem": "4096 16384 212992"} {
		fd, err := syscall.Open(proc+"/sys/net/ipv4/"+name, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
		if err == syscall.ENOENT {
			continue // a kernel without TCP
		}
		if err != nil {
			return err
		}
		_, err = syscall.Write(fd, []byte(sizes))
		syscall.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// coverPath mounts src read-only over dst, if dst exists.
func coverPath(src, dst string) error {
	var st syscall.Stat_t
	if syscall.Lstat(dst, &st) == syscall.ENOENT {
		return nil
	}
	fd, err := openTree(src)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := setAttr(fd, attrReadOnly|attrNoSUID|attrNoExec); err != nil {
		return err
	}
	return moveMount(fd, dst)
}

// makePoint creates a directory or an empty file as a mount point.
func makePoint(path string, file bool) error {
	makeParents(path)
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err == nil && (st.Mode&syscall.S_IFMT == syscall.S_IFREG) == file {
		return nil // the path is inside an existing mount
	}
	if !file {
		if err := syscall.Mkdir(path, 0o755); err != nil && err != syscall.EEXIST {
			return err
		}
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_WRONLY|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	return syscall.Close(fd)
}

// makeParents creates the parent directories of path. It ignores errors; if it
// fails, so does the operation that follows.
func makeParents(path string) {
	parents := parentDirs(path)
	if len(parents) == 0 {
		return
	}
	var st syscall.Stat_t
	if syscall.Lstat(parents[len(parents)-1], &st) == nil {
		return // the others exist too
	}
	for _, p := range parents {
		syscall.Mkdir(p, 0o755)
	}
}

func writeFile(path, data string, mode uint32) error {
	makeParents(path)
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_WRONLY|syscall.O_CLOEXEC|syscall.O_NOFOLLOW|syscall.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.Write(fd, []byte(data))
	return err
}
