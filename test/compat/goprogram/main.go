// Command goprogram is an ordinary Go program: it uses goroutines, the loopback
// interface and a child process.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ln, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	var wg sync.WaitGroup
	answers := make([]string, 20)
	for i := range answers {
		wg.Go(func() { answers[i] = echo(ln.Addr().String(), "x") })
	}
	wg.Wait()
	n := 0
	for _, a := range answers {
		n += len(a)
	}
	out, err := exec.Command("sh", "-c", "echo child").Output()
	fmt.Print(n, " ", string(out))
	return err
}

func echo(addr, text string) string {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	fmt.Fprint(c, text)
	c.(*net.TCPConn).CloseWrite()
	b, _ := io.ReadAll(c)
	return string(b)
}
