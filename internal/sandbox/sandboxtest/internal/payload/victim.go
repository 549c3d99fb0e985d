//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// counter counts events by name.
type counter struct {
	mu   sync.Mutex
	seen map[string]int // guarded by mu
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what]++
}

func (c *counter) print(enc *json.Encoder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	enc.Encode(c.seen)
}

// victim represents the hub. Its arguments are a directory for its socket, the
// host's LAN address or "", a file to keep open, and a secret for its memory
// and for the user's keyring. It first prints its addresses. For each line of
// input, it prints its counters. It runs until its input ends.
func victim(args []string) {
	isBounded = false
	dir, lan, file, secret := args[0], args[1], args[2], os.Getenv("LOADOUT_TEST_HUB_MEMORY")
	c := &counter{seen: map[string]int{}}
	countSignals(c)
	at := map[string]any{"pid": os.Getpid()}
	at["tcp"] = c.accept("tcp", "tcp4", "127.0.0.1:0")
	at["tcp6"] = c.accept("tcp6", "tcp6", "[::1]:0")
	at["lan"] = ""
	if lan != "" {
		at["lan"] = c.accept("lan", "tcp4", net.JoinHostPort(lan, "0"))
	}
	at["abstract"] = c.accept("abstract", "unix", "@"+os.Args[2])
	at["unix"] = c.accept("unix", "unix", filepath.Join(dir, "hub.sock"))
	os.Chmod(filepath.Join(dir, "hub.sock"), 0o666)
	if pc, err := net.ListenPacket("udp4", "127.0.0.1:0"); err == nil {
		at["udp"] = pc.LocalAddr().String()
		go func() {
			for buf := make([]byte, 64); ; c.add("udp") {
				if _, _, err := pc.ReadFrom(buf); err != nil {
					return
				}
			}
		}()
	}
	if mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err == nil {
		copy(mem, secret)
		at["addr"], at["len"] = fmt.Sprint(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))), len(secret)
	}
	if fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		at["fd"] = fd
	}
	forget := addKey(os.Args[2], secret, at)
	enc := json.NewEncoder(os.Stdout)
	enc.Encode(at)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		c.print(enc)
	}
	forget()
}

func (c *counter) accept(what, network, addr string) string {
	l, err := net.Listen(network, addr)
	if err != nil {
		return ""
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.add(what)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// addKey adds the secret to the user's keyring. The returned function removes
// the key.
func addKey(name, secret string, at map[string]any) (forget func()) {
	at["key"] = ""
	id, err := unix.AddKey("user", name, []byte(secret), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		at["nokey"] = err.Error()
		return func() {}
	}
	unix.KeyctlSetperm(id, 0x3f3f0000) // the owner may do everything
	at["key"] = name
	return func() {
		unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0)
	}
}
