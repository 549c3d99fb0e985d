//go:build linux

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tools are commands for the host and for behaviour tests. They print only the
// requested data.
var tools = map[string]func([]string){
	"victim":  victim,
	"feature": feature,
	"between": startAndExit,
	"stay":    func([]string) { pause(maxLifetime / 2) },
	"sleep":   func([]string) { fmt.Println("asleep"); pause(maxLifetime) },
	"exit":    func(a []string) { os.Exit(number(a[0])) },
	"signal":  func(a []string) { unix.Kill(os.Getpid(), unix.Signal(number(a[0]))); pause(maxLifetime) },
	"args":    func(a []string) { json.NewEncoder(os.Stdout).Encode(a) },
	"env":     func([]string) { json.NewEncoder(os.Stdout).Encode(os.Environ()) },
	"pwd":     func([]string) { dir, err := os.Getwd(); printResult(dir, err) },
	"read":    func(a []string) { b, err := os.ReadFile(a[0]); printResult(string(b), err) },
	"write":   func(a []string) { printResult("written", os.WriteFile(a[0], []byte(a[1]), 0o755)) },
	"cat":     func([]string) { io.Copy(os.Stdout, os.Stdin) },
	"both":    func(a []string) { fmt.Print(a[0]); fmt.Fprint(os.Stderr, a[1]) },
	"sum":     sum,
	"talk":    talk,
	"fill":    func(a []string) { fillOutput(number(a[0])) },
	"links":   links,
	"list":    list,
	"dial": func(a []string) {
		c, err := net.DialTimeout(a[0], a[1], time.Second)
		printResult(fmt.Sprint(c != nil), err)
	},
	"ifaces": ifaces,
	"take":   take,
	"spin":   func([]string) { signal.Ignore(unix.SIGXCPU); burn() },
	"hog":    func([]string) { printResult("held", allocateInChildren(4, 100*mib, unix.MAP_PRIVATE)) },
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

func printResult(s string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(s)
}

func sum([]string) {
	h := sha256.New()
	n, err := io.Copy(h, os.Stdin)
	printResult(fmt.Sprintf("%d %x", n, h.Sum(nil)), err)
}

// talk writes a reply to each line of input.
func talk([]string) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Printf("heard %s\n", in.Text())
	}
}

func fillOutput(n int) {
	buf := make([]byte, 4096)
	for i := range buf {
		buf[i] = 'o'
	}
	for ; n > 0; n -= len(buf) {
		if _, err := os.Stdout.Write(buf[:min(n, len(buf))]); err != nil {
			os.Exit(1)
		}
	}
}

// links creates a file that must be collected and files that must not.
func links([]string) {
	dir := outDir()
	os.WriteFile(filepath.Join(dir, "real"), []byte("real"), 0o644)
	os.Symlink("real", filepath.Join(dir, "a-link"))
	os.Symlink("/etc/passwd", filepath.Join(dir, "b-link"))
	os.Symlink("/etc", filepath.Join(dir, "c-link"))
	unix.Mkfifo(filepath.Join(dir, "d-fifo"), 0o644)
	os.Mkdir(filepath.Join(dir, "sub"), 0o755)
	os.WriteFile(filepath.Join(dir, "sub", "deep"), []byte("deep"), 0o4755)
	os.WriteFile(filepath.Join(workDir(), "beside"), []byte("beside"), 0o600)
}

func list(a []string) {
	for _, dir := range a {
		all, err := os.ReadDir(dir)
		if err != nil {
			printResult("", err)
		}
		for _, e := range all {
			fmt.Println(e.Name())
		}
	}
}

func ifaces([]string) {
	all, err := net.Interfaces()
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	b, _ := json.Marshal(names)
	if err != nil { // netlink is not available
		b = []byte("null")
	}
	fmt.Println(string(b))
}

// countSignals counts the signals that the victim receives.
func countSignals(c *counter) {
	usr, win := make(chan os.Signal, 64), make(chan os.Signal, 64)
	signal.Notify(usr, unix.SIGUSR1)
	signal.Notify(win, unix.SIGWINCH)
	go func() {
		for {
			select {
			case <-usr:
				c.add("usr1")
			case <-win:
				c.add("winch")
			}
		}
	}()
}
