//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memoryKinds maps an attack's ID to a function that allocates one MiB of the
// machine's memory, which the process holds until it exits.
var memoryKinds = map[string]func() error{
	"M01": takePrivate, "M02": takePageTables, "M03": takeSharedPages, "M04": takeZeroDevice, "M05": takeMemfd, "M06": takeQueues,
	"M07": takeSegment, "M08": takeUnixBuffers, "M09": takeTCPBuffers, "M10": takePipe, "M11": takePrivate,
	"M12": takeSplicedPages, "M13": takeSentPages,
}

// takeMemory starts children that each allocate an equal part of the memory. The
// first argument is the size in MiB, and the second the number of children. A
// child writes its letter for each MiB. When the first child exits, or after
// four seconds, takeMemory writes ! and stops the children. On the next line it
// writes the letters of the children that were killed: their memory was freed,
// so other children could allocate it.
func takeMemory(t *tally) {
	kind := os.Args[1]
	total, children := number(t.args[0]), number(t.args[1])
	ended := make(chan error, children)
	var kids []*exec.Cmd
	for i := range children {
		self, err := os.Executable()
		if err != nil {
			t.try("start", err)
			return
		}
		cmd := exec.Command(self, "take", t.mark, kind, strconv.Itoa(total/children), letter(i))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // few threads
		if err := cmd.Start(); err != nil {
			t.try("start", err)
			break
		}
		kids = append(kids, cmd)
		go func() { ended <- cmd.Wait() }()
	}
	children = len(kids)
	var err error
	select {
	case err = <-ended:
		children--
	case <-time.After(4 * time.Second):
		err = errors.New("no child was killed")
	}
	os.Stdout.WriteString("!\n")
	for _, cmd := range kids {
		cmd.Process.Signal(unix.SIGTERM)
	}
	for range children { // they may have to clean up
		<-ended
	}
	for i, cmd := range kids {
		if cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == unix.SIGKILL {
			os.Stdout.WriteString(letter(i))
		}
	}
	os.Stdout.WriteString("\n")
	t.try(kind, fmt.Errorf("child: %w", err))
}

// letter returns the letter that a child writes, such as "A" for the first.
func letter(child int) string { return string(rune('A' + child)) }

// take allocates memory and then waits. Its arguments are the kind of memory,
// the maximum number of MiB, and the text to write for each allocated MiB. It
// stops allocating at the first failure.
func take(args []string) {
	kind := memoryKinds[args[0]]
	fill := func() {
		for i := range number(args[1]) {
			if err := kind(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				if i == 0 {
					os.Exit(1)
				}
				break
			}
			os.Stdout.WriteString(args[2])
		}
	}
	if args[0] == "M11" {
		go func() {
			fill()
			pause(maxLifetime)
		}()
		unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // ends only this thread, which is the first one; see init
	}
	stop := make(chan os.Signal, 1)
	if args[0] == "M06" {
		signal.Notify(stop, unix.SIGTERM)
	}
	fill()
	<-stop
	for _, id := range queues {
		unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
	}
}

func init() {
	if len(os.Args) > 1 && os.Args[1] == "take" {
		runtime.LockOSThread() // main stays on the first thread
	}
}

// mapPages maps memory and returns its address.
func mapPages(size, prot, flags int, fd int) (uintptr, error) {
	p, _, e := unix.Syscall6(unix.SYS_MMAP, 0, uintptr(size), uintptr(prot), uintptr(flags), uintptr(fd), 0)
	return p, errnoError(e)
}

func touchPages(p uintptr, size int) {
	for off := 0; off < size; off += 4096 {
		poke(p + uintptr(off))
	}
}

func takePrivate() error {
	p, err := mapPages(mib, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1)
	if err == nil {
		touchPages(p, mib)
	}
	return err
}

// takePageTables reads one page in each of 256 page tables, so that the kernel
// allocates the tables.
func takePageTables() error {
	const tables, covered = mib / 4096, 2 * mib
	p, err := mapPages(tables*covered, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, -1)
	if err != nil {
		return err
	}
	unix.Syscall(unix.SYS_MADVISE, p, tables*covered, unix.MADV_NOHUGEPAGE)
	for i := range tables {
		peek(p + uintptr(i)*covered)
	}
	return nil
}

// peek reads the byte at an address.
func peek(addr uintptr) { runtime.KeepAlive(**(**byte)(unsafe.Pointer(&addr))) }

func takeSharedPages() error {
	p, err := mapPages(mib, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS, -1)
	if err != nil {
		return err
	}
	touchPages(p, mib)
	_, _, e := unix.Syscall(unix.SYS_MADVISE, p, mib, unix.MADV_DONTNEED)
	return errnoError(e)
}

// takeZeroDevice maps /dev/zero and unmaps all but the first page.
func takeZeroDevice() error {
	fd, err := unix.Open("/dev/zero", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	p, err := mapPages(mib, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED, fd)
	if err != nil {
		return err
	}
	touchPages(p, mib)
	_, _, e := unix.Syscall(unix.SYS_MUNMAP, p+4096, mib-4096, 0)
	return errnoError(e)
}

func takeMemfd() error {
	_, err := fillMemfd(1)
	return err
}

// queues lists the message queues to remove, because the kernel does not remove
// them when the process exits.
var queues []uintptr

// takeQueues fills 64 message queues.
func takeQueues() error {
	const count, size = 64, 8 << 10
	msg := make([]byte, 8+size)
	msg[0] = 1
	for range count {
		id, _, e := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600, 0)
		if e != 0 {
			return e
		}
		queues = append(queues, id)
		for range 2 {
			if _, _, e := unix.Syscall6(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&msg[0])), size, unix.IPC_NOWAIT, 0, 0); e != 0 {
				return e
			}
		}
	}
	return nil
}

// takeSegment attaches a shared memory segment that the kernel removes when the
// process exits.
func takeSegment() error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, mib, 0o600)
	if err != nil {
		return err
	}
	b, err := unix.SysvShmAttach(id, 0, 0)
	unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	if err != nil {
		return err
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return unix.Madvise(b, unix.MADV_DONTNEED)
}

func takeUnixBuffers() error {
	for left := mib; left > 0; {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 8*mib)
		left -= fillDescriptor(fds[0], mib)
	}
	return nil
}

// takeTCPBuffers fills the buffers of connections whose other end never reads.
func takeTCPBuffers() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	for left := mib; left > 0; {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 8*mib)
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return err
		}
		c, err := l.Accept()
		if err != nil {
			return err
		}
		c.(*net.TCPConn).SetReadBuffer(8 * mib)
		held = append(held, c)
		unix.SetNonblock(fd, true)
		left -= fillDescriptor(fd, mib)
	}
	return nil
}

var held []any // objects that must not be finalized

// takePipe puts one page of each huge page into a pipe. The pipe then keeps the
// whole huge page in memory.
func takePipe() error {
	const huge = 2 * mib
	if pipeRoom == 0 {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			return err
		}
		pipeWriter, pipeRoom = p[1], 2*16 // two calls for each huge page
	}
	if pipeRoom--; pipeRoom%2 == 0 {
		return nil
	}
	p, err := mapPages(2*huge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1)
	if err != nil {
		return err
	}
	at := (p + huge - 1) &^ (huge - 1)
	unix.Syscall(unix.SYS_MADVISE, at, huge, unix.MADV_HUGEPAGE)
	touchPages(at, huge)
	iov := unix.Iovec{Base: *(**byte)(unsafe.Pointer(&at)), Len: 4096}
	_, _, e := unix.Syscall6(unix.SYS_VMSPLICE, uintptr(pipeWriter), uintptr(unsafe.Pointer(&iov)), 1, 0, 0, 0)
	if e != 0 {
		return e
	}
	_, _, e = unix.Syscall(unix.SYS_MUNMAP, p, 2*huge, 0)
	return errnoError(e)
}

var pipeWriter, pipeRoom int

// fillDescriptor writes up to limit bytes and returns how many fit.
func fillDescriptor(fd, limit int) (n int) {
	buf := make([]byte, 64<<10)
	for n < limit {
		m, err := unix.Write(fd, buf[:min(len(buf), limit-n)])
		if err != nil {
			break
		}
		n += m
	}
	return max(n, 1)
}
