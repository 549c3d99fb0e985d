//go:build linux

// Engine implements the command line of docker for tests; see package containertest.
package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// state is the directory with the engine's state. faults lists the features to
// implement incorrectly. Both are set at build time.
var state, faults string

func hasFault(what string) bool { return slices.Contains(strings.Split(faults, ","), what) }

// container describes a running container in its state file.
type container struct {
	Args []string // bwrap arguments
	PID  int      // PID of the first process
	// Limits are prlimit arguments.
	Limits []string
	Memory int64
	OOM    bool
}

func main() {
	if len(os.Args) < 2 {
		fail(125, "command missing")
	}
	logCall(os.Args[1:])
	args := os.Args[2:]
	switch os.Args[1] {
	case "version":
		fmt.Println("28.0.0-test")
	case "image":
		if args[len(args)-1] == "missing:1" {
			fail(1, "Error: No such image: missing:1")
		}
	case "pull":
		fail(1, "no registry available")
	case "create":
		create(args)
	case "start":
		start(args[0])
	case "exec":
		run(args)
	case "inspect":
		fmt.Println(load(args[len(args)-1]).OOM)
	case "kill":
		kill(args[len(args)-1])
	case "rm":
		name := args[len(args)-1]
		kill(name)
		os.Remove(file(name))
		os.RemoveAll(filepath.Join(state, name+".groups"))
	case "ps":
		all, _ := filepath.Glob(filepath.Join(state, "*.json"))
		for _, f := range all {
			fmt.Println(strings.TrimSuffix(filepath.Base(f), ".json"))
		}
	default:
		fail(125, "unknown command: "+os.Args[1])
	}
}

func fail(code int, text string) {
	fmt.Fprintln(os.Stderr, text)
	os.Exit(code)
}

func check(err error) {
	if err != nil {
		fail(125, err.Error())
	}
}

func logCall(args []string) {
	f, err := os.OpenFile(filepath.Join(state, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	defer f.Close()
	_, err = f.WriteString(strings.ReplaceAll(strings.Join(args, "\x00"), "\n", "\\n") + "\n")
	check(err)
}

func file(name string) string { return filepath.Join(state, name+".json") }

func load(name string) *container {
	b, err := os.ReadFile(file(name))
	if err != nil {
		fail(1, "Error response from daemon: No such container: "+name)
	}
	var m container
	check(json.Unmarshal(b, &m))
	return &m
}

func (m *container) save(name string) {
	b, err := json.Marshal(m)
	check(err)
	check(os.WriteFile(file(name), b, 0o600))
}

// boolFlags are flags that have no value.
var boolFlags = []string{"--init", "--read-only", "-i", "--force", "--volumes", "--all"}

// parse separates flags from positional arguments.
func parse(args []string) (flags [][2]string, rest []string) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if slices.Contains(boolFlags, args[0]) {
			flags, args = append(flags, [2]string{args[0]}), args[1:]
			continue
		}
		flags, args = append(flags, [2]string{args[0], args[1]}), args[2:]
	}
	return flags, args
}

func create(args []string) {
	flags, rest := parse(args)
	m := &container{Args: []string{"--unshare-user", "--unshare-all", "--uid", "1000", "--gid", "1000", "--as-pid-1", "--new-session", "--cap-drop", "ALL", "--clearenv",
		"--proc", "/proc", "--dev", "/dev"}}
	for _, p := range []string{"/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc/alternatives", "/etc/ld.so.cache"} {
		m.Args = append(m.Args, "--ro-bind-try", p, p)
	}
	name, entry, groups := "", "", map[string]string{}
	for _, f := range flags {
		if hasFault("limits") && slices.Contains([]string{"--memory", "--pids-limit", "--cpus", "--ulimit"}, f[0]) {
			continue
		}
		switch f[0] {
		case "--name":
			name = f[1]
		case "--entrypoint":
			entry = f[1]
		case "--network":
			if f[1] == "host" || hasFault("network") {
				m.Args = append(m.Args, "--share-net")
			}
		case "--memory":
			m.Memory, _ = strconv.ParseInt(f[1], 10, 64)
			groups["memory.max"] = f[1]
		case "--pids-limit":
			groups["pids.max"] = f[1]
		case "--cpus":
			cores, err := strconv.ParseFloat(f[1], 64)
			check(err)
			groups["cpu.max"] = strconv.Itoa(int(cores*100_000)) + " 100000"
		case "--ulimit":
			m.Limits = append(m.Limits, "--"+f[1])
		case "--tmpfs":
			path, options, _ := strings.Cut(f[1], ":")
			for o := range strings.SplitSeq(options, ",") {
				if size, ok := strings.CutPrefix(o, "size="); ok {
					m.Args = append(m.Args, "--perms", "1777", "--size", size, "--tmpfs", path)
				}
			}
		case "--mount":
			fields, err := csv.NewReader(strings.NewReader(f[1])).Read()
			check(err)
			kind, source, target := "--bind", "", ""
			for _, field := range fields {
				k, v, _ := strings.Cut(field, "=")
				switch k {
				case "source":
					source = v
				case "target":
					target = v
				case "readonly":
					kind = "--ro-bind"
				}
			}
			m.Args = append(m.Args, kind, source, target)
		}
	}
	// Create the files that a control group would contain.
	dir := filepath.Join(state, name+".groups")
	check(os.Mkdir(dir, 0o755))
	for file, value := range groups {
		check(os.WriteFile(filepath.Join(dir, file), []byte(value+"\n"), 0o644))
	}
	m.Args = append(m.Args, "--ro-bind", dir, "/sys/fs/cgroup", "--size", "16777216", "--tmpfs", "/dev/shm")
	m.Args = append(append(m.Args, "--remount-ro", "/", "--", "/usr/bin/"+entry), rest[1:]...)
	m.save(name)
	fmt.Println(name)
}

func start(name string) {
	m := load(name)
	r, w, err := os.Pipe()
	check(err)
	cmd := exec.Command("bwrap", append([]string{"--info-fd", "3"}, m.Args...)...)
	cmd.ExtraFiles, cmd.Env, cmd.Dir = []*os.File{w}, []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	log, err := os.Create(filepath.Join(state, "log"))
	check(err)
	cmd.Stderr = log
	check(cmd.Start())
	w.Close()
	var info struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(r).Decode(&info); err != nil {
		b, _ := os.ReadFile(log.Name())
		fail(1, string(b))
	}
	for { // wait until the first process is ready
		exe, err := os.Readlink("/proc/" + strconv.Itoa(info.PID) + "/exe")
		if err != nil {
			b, _ := os.ReadFile(log.Name())
			fail(1, string(b))
		}
		if strings.HasSuffix(exe, "/sleep") {
			break
		}
	}
	m.PID = info.PID
	m.save(name)
	fmt.Println(name)
}

func run(args []string) {
	flags, rest := parse(args)
	m := load(rest[0])
	if m.PID == 0 {
		fail(1, "Error response from daemon: container is not running")
	}
	env, dir := []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, "/"
	for _, f := range flags {
		switch f[0] {
		case "--workdir":
			dir = f[1]
		case "--env":
			env = append(env, f[1])
		case "--env-file":
			file, err := os.Open(f[1])
			check(err)
			for s := bufio.NewScanner(file); s.Scan(); {
				env = append(env, s.Text())
			}
			file.Close()
		}
	}
	// Container runtimes start each command in a new session.
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(m.PID), "-U", "--preserve-credentials", "-m", "-p", "-n", "-i", "-u", "--wd=" + "/proc/" + strconv.Itoa(m.PID) + "/root" + dir, "--", "setsid", "setpriv", "--no-new-privs", "prlimit"}, append(m.Limits, rest[1:]...)...)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if hasFault("privileges") {
		cmd.Args = slices.DeleteFunc(cmd.Args, func(a string) bool { return a == "--no-new-privs" })
	}
	runtime.LockOSThread() // the command inherits the filter of this thread
	if !hasFault("seccomp") {
		installFilter()
	}
	check(cmd.Start())
	go watchMemory(m, rest[0])
	cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		os.Exit(128 + int(ws.Signal()))
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// watchMemory kills the container if it exceeds its memory limit.
func watchMemory(m *container, name string) {
	space, err := os.Readlink("/proc/" + strconv.Itoa(m.PID) + "/ns/pid")
	check(err)
	for range time.Tick(20 * time.Millisecond) {
		var inside []int
		used := int64(0)
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, d := range dirs {
			pid, _ := strconv.Atoi(filepath.Base(d))
			if at, _ := os.Readlink(d + "/ns/pid"); at != space || pid == m.PID {
				continue
			}
			inside = append(inside, pid)
			b, _ := os.ReadFile(d + "/smaps_rollup")
			for line := range strings.Lines(string(b)) {
				if rest, ok := strings.CutPrefix(line, "Pss_Anon:"); ok {
					kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
					used += kb << 10
				}
			}
		}
		if m.Memory > 0 && used > m.Memory {
			m.OOM = true
			m.save(name)
			for _, pid := range inside {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// installFilter installs, for this thread, a seccomp filter that allows all
// system calls.
func installFilter() {
	if os.Geteuid() != 0 {
		check(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	}
	code := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	check(unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0))
}

func kill(name string) {
	m := load(name)
	if m.PID > 0 {
		syscall.Kill(m.PID, syscall.SIGKILL)
		m.PID = 0
		m.save(name)
	}
}
