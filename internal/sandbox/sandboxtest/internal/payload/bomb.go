//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// burn uses more CPU time than any test allows, even on a slow machine.
func burn() {
	const enough = 10 // seconds
	for {
		var u unix.Rusage
		if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil || u.Utime.Sec+u.Stime.Sec >= enough {
			return
		}
	}
}

func loop(*tally) {
	for end := time.Now().Add(maxLifetime / 2); time.Now().Before(end); {
	}
}

func ignoreTerm(*tally) {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	pause(maxLifetime / 2)
}

func forkBomb(t *tally) {
	const most = 150
	runtime.LockOSThread()
	var kids []int
	var e unix.Errno
	for len(kids) < most && e == 0 {
		var pid int
		if pid, e = forkSleeper(6); e == 0 {
			kids = append(kids, pid)
		}
	}
	pause(200 * time.Millisecond) // gives watchers time to react
	n := countRunning(kids)
	killAll(kids)
	t.try(fmt.Sprintf("%d processes", n), errorIfExceeded(n, 80, e))
}

// errorIfExceeded returns nil if n exceeds limit, which is the policy's limit
// plus a tolerance. Otherwise it returns an error that wraps e.
func errorIfExceeded(n, limit int, e unix.Errno) error {
	if n > limit {
		return nil
	}
	return fmt.Errorf("stopped after creating %d: %w", n, e)
}

func allocateInOneProcess(t *tally) {
	t.try("400 MB private", allocateInChildren(1, 400*mib, unix.MAP_PRIVATE))
	t.try("400 MB shared", allocateInChildren(1, 400*mib, unix.MAP_SHARED))
}

func allocateInFourProcesses(t *tally) {
	t.try("4 × 100 MB", allocateInChildren(4, 100*mib, unix.MAP_PRIVATE))
}

// allocateInChildren starts children that allocate memory. It returns nil if
// the children could keep the memory for a while.
func allocateInChildren(children int, size int64, kind uintptr) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	runtime.LockOSThread()
	fd := int(w.Fd())
	var kids []int
	for range children {
		pid, e := forkToucher(size, kind, fd)
		if e != 0 {
			err = e
			break
		}
		kids = append(kids, pid)
	}
	w.Close()
	defer func() { killAll(kids) }()
	full := 0
	for buf := make([]byte, children); full < children && err == nil; { // a child that exited has closed its end
		var n int
		n, err = r.Read(buf)
		full += n
	}
	pause(500 * time.Millisecond)
	if n := countRunning(kids); full < children || n < children {
		return fmt.Errorf("allocate memory: %d of %d children succeeded, %d still running, error %v", full, children, n, err)
	}
	return nil
}

func bigFile(t *tally) {
	n, err := writeMegabytes(filepath.Join(workDir(), t.mark), 200)
	if n > 55 {
		err = nil
	}
	t.try(fmt.Sprintf("%d MB in a file", n), err)
}

// writeMegabytes writes a file of count MB, and returns how many MB it wrote.
func writeMegabytes(path string, count int) (int, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, mib)
	for i := range count {
		if _, err := f.Write(buf); err != nil {
			return i, err
		}
	}
	return count, nil
}

// writeManyFiles writes many more files than the limit allows, because a
// watcher reacts late on a busy machine.
func writeManyFiles(dir, mark string) (int, error) {
	const most = 640
	total := 0
	for i := 0; total < most; i++ {
		n, err := writeMegabytes(filepath.Join(dir, mark+strconv.Itoa(i)), 4)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func manyFiles(t *tally) {
	n, err := writeManyFiles(workDir(), t.mark)
	if n > 68 {
		err = nil
	}
	t.try(fmt.Sprintf("%d MB in files", n), err)
}

func inodes(t *tally) {
	n := 0
	var err error
	for dir := ""; n < 20000; n++ {
		if n%1000 == 0 {
			dir = filepath.Join(workDir(), strconv.Itoa(n))
			if err = os.Mkdir(dir, 0o755); err != nil {
				break
			}
		}
		var fd int
		if fd, err = unix.Open(filepath.Join(dir, strconv.Itoa(n)), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644); err != nil {
			break
		}
		unix.Close(fd)
	}
	t.try(strconv.Itoa(n)+" inodes", err)
}

func fillShm(t *tally) {
	for _, place := range []struct {
		dir  string
		most int
	}{{"/dev/shm", 16}, {"/tmp", 32}, {os.TempDir(), 32}} {
		n, err := writeManyFiles(place.dir, t.mark+"-")
		if n > place.most+2 {
			err = nil
		}
		t.try(fmt.Sprintf("%d MB in %s", n, place.dir), err)
		all, _ := filepath.Glob(filepath.Join(place.dir, t.mark+"-*"))
		for _, p := range all {
			os.Remove(p)
		}
	}
}

func flood(*tally) {
	buf := make([]byte, mib)
	for i := range buf {
		buf[i] = 'f'
	}
	for range 300 {
		if _, err := os.Stdout.Write(buf); err != nil {
			os.Exit(1)
		}
	}
}

// daemon starts a process that is detached from its parent.
func daemon(t *tally) {
	cmd, err := startSelf("between", t.mark, nil)
	if err == nil {
		err = cmd.Wait()
	}
	t.try("daemon", err)
}

func startAndExit([]string) {
	if _, err := startSelf("stay", os.Args[2], nil); err != nil {
		os.Exit(1)
	}
}

// holdStdout starts a process that keeps this process's standard output open.
func holdStdout(t *tally) {
	_, err := startSelf("stay", t.mark, os.Stdout)
	t.try("child", err)
}

// startSelf starts this program again in a new session.
func startSelf(what, mark string, out *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, what, mark)
	if out != nil {
		cmd.Stdout = out
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}

func openMany(t *tally) {
	n := 0
	var err error
	for ; n < 5000; n++ {
		if _, err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			break
		}
	}
	if n > 256 {
		err = nil
	}
	t.try(strconv.Itoa(n)+" descriptors", err)
}

// spinTwo runs two busy children for several seconds and prints the CPU time
// that they used.
func spinTwo(t *tally) {
	runtime.LockOSThread()
	seconds, _ := strconv.ParseInt(t.args[0], 10, 64)
	start := time.Now()
	var kids []int
	for range 2 {
		if pid, e := forkSpinner(seconds); e == 0 {
			kids = append(kids, pid)
		}
	}
	for _, pid := range kids {
		unix.Wait4(pid, nil, 0, nil)
	}
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_CHILDREN, &u)
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	fmt.Printf("CPU %d %d\n", cpu.Milliseconds(), time.Since(start).Milliseconds())
	t.try("two spinning", nil)
}

func threads(t *tally) {
	const most = 150
	started := make(chan struct{}, most)
	for range most {
		go func() {
			runtime.LockOSThread()
			started <- struct{}{}
			ts := unix.Timespec{Sec: 6}
			unix.Nanosleep(&ts, nil)
		}()
	}
	end := time.After(3 * time.Second)
	n := 0
	for n < most {
		select {
		case <-started:
			n++
			continue
		case <-end:
		}
		break
	}
	t.try(fmt.Sprintf("%d threads", n), errorIfExceeded(n, 80, unix.EAGAIN))
}

func memfd(t *tally) {
	n, err := fillMemfd(400)
	if n > 256 {
		err = nil
	}
	t.try(fmt.Sprintf("%d MB in a memfd", n), err)
}

// memfds exceeds the memory limit with several memfds.
func memfds(t *tally) {
	total := 0
	for total < 400 {
		n, err := fillMemfd(min(40, 400-total))
		total += n
		if err != nil {
			t.try("memfd", err)
			break
		}
	}
	if total > 300 {
		pause(500 * time.Millisecond)
		t.try(fmt.Sprintf("%d MB in memfds", total), nil)
	}
}

func fillMemfd(size int) (int, error) {
	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, mib)
	for i := range size {
		if _, err := unix.Write(fd, buf); err != nil {
			return i, err
		}
	}
	return size, nil
}

// nestDirs creates deeply nested directories.
func nestDirs(t *tally) {
	dir, err := unix.Open(workDir(), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	n := 0
	for ; err == nil && n < 2000; n++ {
		if err = unix.Mkdirat(dir, "d", 0o755); err != nil {
			break
		}
		var next int
		if next, err = unix.Openat(dir, "d", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			unix.Close(dir)
			dir = next
		}
	}
	t.try(strconv.Itoa(n)+" directories", err)
}
