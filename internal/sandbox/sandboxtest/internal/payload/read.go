//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// printFile prints the start of a file, which the host compares with a secret.
func printFile(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return showFD(fd)
}

func showFD(fd int) error {
	buf := make([]byte, 4<<10)
	n, err := unix.Pread(fd, buf, 0)
	if errors.Is(err, unix.ESPIPE) {
		n, err = unix.Read(fd, buf)
	}
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("no data to read")
	}
	fmt.Printf("DATA %q\n", buf[:n])
	return nil
}

func readAny(t *tally) {
	for _, p := range t.args {
		t.try(p, printFile(p))
	}
}

func readEnv(t *tally) {
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "LOADOUT_TEST_") {
			fmt.Printf("DATA %q\n", kv)
			t.try(kv, nil)
		}
	}
}

func pids() []string {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return all
}

// readEnviron reads the environments of all other processes that it can see,
// and of those whose PIDs are its arguments.
func readEnviron(t *tally) {
	for _, pid := range append(pids(), t.args...) {
		if pid == strconv.Itoa(os.Getpid()) {
			continue
		}
		b, err := os.ReadFile("/proc/" + pid + "/environ")
		if err != nil {
			t.try(pid, err)
			continue
		}
		for kv := range strings.SplitSeq(string(b), "\x00") {
			if strings.HasPrefix(kv, "LOADOUT_TEST_HUB_") {
				fmt.Printf("DATA %q\n", kv)
				t.try(pid, nil)
			}
		}
	}
}

func listProcesses(t *tally) {
	for _, pid := range pids() {
		b, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err == nil && strings.Contains(string(b), "\x00victim\x00") {
			fmt.Printf("DATA %q\n", b)
			t.try(pid, nil)
		}
	}
}

// climb tries to read a host file by paths that lead out of the sandbox: with
// "..", through /proc/PID/root and similar, and through a symlink. Its
// arguments are the file and the victim's PID.
func climb(t *tally) {
	file, pid := t.args[0], t.args[1]
	up := strings.Repeat("../", 40)
	for _, p := range []string{
		up + file[1:], workDir() + "/" + up + file[1:], "/proc/self/cwd/" + up + file[1:],
		"/proc/" + pid + "/root" + file, "/proc/" + pid + "/cwd/" + up + file[1:], "/proc/1/root" + file, "/proc/self/root" + file, "/proc/thread-self/root" + file,
	} {
		t.try(p, printFile(p))
	}
	link := filepath.Join(workDir(), "climb")
	if err := os.Symlink(file, link); err == nil {
		t.try("by a symlink", printFile(link))
		os.Remove(link)
	}
	for _, p := range pids() {
		if p != strconv.Itoa(os.Getpid()) {
			t.try(p, printFile("/proc/"+p+"/root"+file))
		}
	}
}

func readFDs(t *tally) {
	for fd := 3; fd < 1024; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		t.try("fd "+strconv.Itoa(fd), showFD(fd))
	}
	for _, pid := range pids() {
		all, _ := filepath.Glob("/proc/" + pid + "/fd/*")
		for _, p := range all {
			if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() {
				t.try(p, printFile(p))
			}
		}
	}
}

// inheritedFDs finds descriptors that were open before this program started. It
// ignores the descriptors of the Go runtime, for which fstat returns no file
// type.
func inheritedFDs(t *tally) {
	for fd := 3; fd < 1024; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != 0 {
			t.try(fmt.Sprintf("fd %d is of type %o", fd, st.Mode&unix.S_IFMT>>12), nil)
		}
	}
}

func readKernelLog(t *tally) {
	buf := make([]byte, 4<<10)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, buf)
	if err == nil && n == 0 {
		err = errors.New("no data to read")
	}
	t.try("syslog", err)
	for _, p := range []string{"/dev/kmsg", "/proc/kmsg"} {
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			n, err = unix.Read(fd, buf)
			unix.Close(fd)
		}
		if err == nil && n == 0 {
			err = errors.New("no data to read")
		}
		t.try(p, err)
	}
}

// searchKeyring looks for the victim's key. Its argument is the key's
// description.
func searchKeyring(t *tally) {
	for _, ring := range []int{unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_USER_SESSION_KEYRING, unix.KEY_SPEC_SESSION_KEYRING} {
		id, err := unix.KeyctlSearch(ring, "user", t.args[0], 0)
		if err == nil {
			err = showKey(id)
		}
		t.try("search "+strconv.Itoa(ring), err)
	}
	id, err := unix.RequestKey("user", t.args[0], "", 0)
	if err == nil {
		err = showKey(id)
	}
	t.try("request_key", err)
}

func showKey(id int) error {
	buf := make([]byte, 256)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0)
	if err != nil {
		return err
	}
	fmt.Printf("DATA %q\n", buf[:min(n, len(buf))])
	return nil
}

// readMemory reads the victim's memory. Its arguments are a PID, an address and
// a length.
func readMemory(t *tally) {
	pid, _ := strconv.Atoi(t.args[0])
	addr, _ := strconv.ParseUint(t.args[1], 10, 64)
	size, _ := strconv.Atoi(t.args[2])
	buf := make([]byte, size)
	local := []unix.Iovec{{Base: unsafe.SliceData(buf), Len: uint64(size)}}
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: size}}, 0)
	if err == nil {
		fmt.Printf("DATA %q\n", buf[:n])
	}
	t.try("process_vm_readv", err)
	f, err := os.Open("/proc/" + t.args[0] + "/mem")
	if err == nil {
		if n, err = f.ReadAt(buf, int64(addr)); err == nil {
			fmt.Printf("DATA %q\n", buf[:n])
		}
		f.Close()
	}
	t.try("/proc/PID/mem", err)
}

// stealFD duplicates the victim's descriptor. Its arguments are a PID and a
// descriptor.
func stealFD(t *tally) {
	pid, _ := strconv.Atoi(t.args[0])
	fd, _ := strconv.Atoi(t.args[1])
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		var got int
		if got, err = unix.PidfdGetfd(pidfd, fd, 0); err == nil {
			err = showFD(got)
		}
	}
	t.try("pidfd_getfd", err)
}
