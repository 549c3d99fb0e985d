//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dial connects to addresses. Its arguments are pairs of a network and an
// address.
func dial(t *tally) {
	for i := 0; i+1 < len(t.args); i += 2 {
		c, err := net.DialTimeout(t.args[i], t.args[i+1], time.Second)
		if err == nil {
			c.Write([]byte("x"))
			c.Close()
		}
		t.try(t.args[i]+" "+t.args[i+1], err)
	}
}

func sendUDP(t *tally) {
	for _, addr := range t.args {
		c, err := net.Dial("udp", addr)
		if err == nil {
			_, err = c.Write([]byte("x"))
			c.Close()
		}
		t.try("udp "+addr, err)
	}
}

func socket(family, kind, proto int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func oddSockets(t *tally) {
	t.try("netlink route", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE))
	t.try("netlink netfilter", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER))
	t.try("raw", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP))
	t.try("packet", socket(unix.AF_PACKET, unix.SOCK_RAW, 0))
	t.try("alg", socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0))
}

func vsock(t *tally) { t.try("AF_VSOCK", socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) }

func ioURing(t *tally) {
	var params [120]byte
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0)
	if e == 0 {
		unix.Close(int(fd))
		t.try("io_uring_setup", nil)
		return
	}
	t.try("io_uring_setup", e)
}

// listen accepts connections. Its argument is a word to send to each client.
func listen(t *tally) {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.try("listen", err)
		return
	}
	fmt.Println("PORT", l.Addr().(*net.TCPAddr).Port)
	l.(*net.TCPListener).SetDeadline(time.Now().Add(1500 * time.Millisecond))
	c, err := l.Accept()
	if err == nil {
		fmt.Fprintln(c, t.args[0])
		c.Close()
	}
	t.try("accept", err)
}

// feature checks whether the kernel has the feature that an attack needs. The
// host runs it outside any sandbox.
func feature(args []string) {
	t := &tally{}
	switch args[0] {
	case "vsock":
		vsock(t)
	case "io_uring":
		ioURing(t)
	case "abi":
		foreignABI(t)
	case "userns":
		newUserNamespace(t)
	case "surface":
		kernelSurface(t)
	case "memfd":
		fd, err := unix.MemfdCreate("x", 0)
		unix.Close(fd)
		t.try("memfd_create", err)
	case "odd":
		oddSockets(t)
	case "tty":
		openTTY(t)
	case "arch":
		fmt.Println(runtime.GOARCH)
	default:
		os.Exit(2)
	}
	t.end()
}
