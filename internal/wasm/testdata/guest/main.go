// Command guest is the guest program for the tests of package wasm. It has a
// subcommand for each action that a script can try.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := do(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func do(what string, args []string) error {
	switch what {
	case "hello":
		fmt.Println("hello")
	case "args":
		fmt.Printf("%q\n", os.Args)
	case "env":
		env := os.Environ()
		slices.Sort(env)
		fmt.Printf("%q\n", env)
	case "exit":
		n, _ := strconv.Atoi(args[0])
		os.Exit(n)
	case "upper":
		b, err := io.ReadAll(os.Stdin)
		fmt.Print(strings.ToUpper(string(b)))
		return err
	case "read":
		b, err := os.ReadFile(args[0])
		fmt.Print(string(b))
		return err
	case "write":
		return os.WriteFile(args[0], []byte(args[1]), 0o644)
	case "linkread": // create a link and read through it
		if err := os.Symlink(args[0], args[1]); err != nil {
			return err
		}
		return do("read", args[1:])
	case "sleep":
		d, _ := time.ParseDuration(args[0])
		time.Sleep(d)
		fmt.Println("slept")
	case "loop":
		for {
			sink++
		}
	case "recurse":
		fmt.Println(recurse(1))
	case "flood":
		line := bytes.Repeat([]byte("x"), 64<<10)
		for range 300 << 20 / len(line) {
			os.Stdout.Write(line) // the error does not matter
		}
	case "alloc":
		n, _ := strconv.Atoi(args[0])
		b := make([]byte, n<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		fmt.Println("allocated")
	case "panic":
		var m map[string]int
		m["a"] = 1
	case "net":
		if fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0); err == nil {
			return fmt.Errorf("socket: %v", fd)
		}
		fmt.Println("no network")
	case "files":
		return files(args[0])
	case "readonly":
		return readonly(args[0])
	default:
		return fmt.Errorf("no command %s", what)
	}
	return nil
}

var sink int

//go:noinline
func recurse(n int) int {
	if n == 0 {
		return 0
	}
	return recurse(n+1) + 1
}

// files uses a writable directory as programs do, and prints what does not work
// as expected.
func files(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	var problems []string
	check := func(what string, ok bool) {
		if !ok {
			problems = append(problems, what)
		}
	}
	must := func(what string, err error) { check(fmt.Sprintf("%s: %v", what, err), err == nil) }
	refused := func(what string, err error, want error) {
		check(fmt.Sprintf("%s: %v, want %v", what, err, want), err != nil && (want == nil || isErr(err, want)))
	}

	must("mkdirall", os.MkdirAll(at("a/b/c"), 0o755))
	refused("mkdir again", os.Mkdir(at("a"), 0o755), os.ErrExist)
	must("write", os.WriteFile(at("a/one.txt"), []byte("one"), 0o644))
	b, err := os.ReadFile(at("a/one.txt"))
	check(fmt.Sprintf("read %q %v", b, err), string(b) == "one" && err == nil)

	f, err := os.OpenFile(at("a/one.txt"), os.O_APPEND|os.O_WRONLY, 0)
	must("append", err)
	f.WriteString("+two")
	f.Close()
	f, err = os.OpenFile(at("a/one.txt"), os.O_RDWR, 0)
	must("open rw", err)
	_, err = f.WriteAt([]byte("ONE"), 0)
	must("pwrite", err)
	buf := make([]byte, 3)
	_, err = f.ReadAt(buf, 4)
	check(fmt.Sprintf("pread %q %v", buf, err), string(buf) == "two" && err == nil)
	end, err := f.Seek(-3, io.SeekEnd)
	check(fmt.Sprintf("seek %d %v", end, err), end == 4 && err == nil)
	rest, err := io.ReadAll(f)
	check(fmt.Sprintf("rest %q %v", rest, err), string(rest) == "two" && err == nil)
	must("truncate", f.Truncate(3))
	must("sync", f.Sync())
	info, err := f.Stat()
	check(fmt.Sprint("fstat ", err), err == nil && info.Size() == 3 && info.Mode().IsRegular())
	must("close", f.Close())

	_, err = os.OpenFile(at("a/one.txt"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	refused("excl", err, os.ErrExist)
	_, err = os.Open(at("a/none"))
	refused("missing", err, os.ErrNotExist)
	_, err = os.Stat(at("a/none"))
	refused("stat missing", err, os.ErrNotExist)
	refused("write a directory", os.WriteFile(at("a"), nil, 0o644), nil)

	must("rename", os.Rename(at("a/one.txt"), at("a/b/two.txt")))
	must("rename a directory", os.Rename(at("a/b"), at("z")))
	when := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	must("chtimes", os.Chtimes(at("z/two.txt"), when, when))
	info, err = os.Stat(at("z/two.txt"))
	check(fmt.Sprint("mtime ", err), err == nil && info.ModTime().Equal(when))

	for i := range 300 { // needs several calls of fd_readdir
		must("write many", os.WriteFile(at(fmt.Sprintf("z/many-%03d-with-a-long-name-to-fill-the-buffer", i)), nil, 0o644))
	}
	list, err := os.ReadDir(at("z"))
	check(fmt.Sprintf("readdir %d %v", len(list), err), len(list) == 302 && err == nil && list[0].Name() == "c" && list[0].IsDir())
	d, err := os.Open(at("z"))
	must("open directory", err)
	names, err := d.Readdirnames(-1)
	check(fmt.Sprintf("names %d %v", len(names), err), len(names) == 302)
	must("new entry", os.WriteFile(at("z/new"), nil, 0o644))
	_, err = d.Seek(0, io.SeekStart)
	must("rewind", err)
	names, err = d.Readdirnames(-1)
	check(fmt.Sprintf("names again %d %v", len(names), err), len(names) == 303)
	d.Close()

	refused("remove a full directory", syscall.Rmdir(at("z")), nil)
	refused("rmdir a file", syscall.Rmdir(at("z/new")), syscall.ENOTDIR)
	refused("unlink a directory", syscall.Unlink(at("z/c")), nil)
	must("remove", os.Remove(at("z/new")))
	must("removeall", os.RemoveAll(at("z")))
	refused("symlink", os.Symlink("x", at("link")), os.ErrPermission)
	refused("link", os.Link(at("a"), at("hard")), nil)
	refused("remove the mount", syscall.Rmdir(dir), nil)
	temp, err := os.MkdirTemp(dir, "t")
	must("mkdirtemp", err)
	must("result", os.WriteFile(filepath.Join(temp, "r"), []byte("kept"), 0o644))
	must("out", os.Rename(filepath.Join(temp, "r"), at("result.txt")))
	must("cleanup", os.RemoveAll(temp))
	if problems != nil {
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	fmt.Println("all well")
	return nil
}

// readonly tries every kind of change to a directory that contains the file f
// and the directory d.
func readonly(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	for what, err := range map[string]error{
		"write":    os.WriteFile(at("f"), []byte("x"), 0o644),
		"create":   os.WriteFile(at("new"), nil, 0o644),
		"truncate": os.Truncate(at("f"), 0),
		"mkdir":    os.Mkdir(at("new"), 0o755),
		"remove":   os.Remove(at("f")),
		"rmdir":    syscall.Rmdir(at("d")),
		"rename":   os.Rename(at("f"), at("g")),
		"chtimes":  os.Chtimes(at("f"), time.Now(), time.Now()),
		"symlink":  os.Symlink("f", at("l")),
		"link":     os.Link(at("f"), at("l")),
	} {
		if err == nil {
			return fmt.Errorf("%s worked", what)
		}
	}
	b, err := os.ReadFile(at("f"))
	fmt.Printf("%s\n", b)
	return err
}

func isErr(err, want error) bool {
	type is interface{ Is(error) bool }
	for err != nil {
		if err == want {
			return true
		}
		if i, ok := err.(is); ok && i.Is(want) {
			return true
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		err = u.Unwrap()
	}
	return false
}
