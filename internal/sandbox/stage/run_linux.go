package stage

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// init runs the stage if the process was started as a stage. It then never
// returns; see the package comment.
func init() {
	if len(os.Args) == 3 && os.Args[1] == ProbeName {
		probe(os.Args[2])
		os.Exit(0)
	}
	if len(os.Args) == 0 || !strings.HasSuffix(os.Args[0], Name) {
		return
	}
	var st syscall.Stat_t
	if syscall.Fstat(ControlFD, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		os.Stderr.WriteString(Name + ": not a command; a sandbox starts this program\n")
		os.Exit(2)
	}
	if len(os.Args) > 1 && os.Args[1] == Guard {
		guard()
	}
	// Packages are initialized on the main thread. Privileges that this thread
	// drops are also dropped for all threads and processes that it starts.
	runtime.LockOSThread()
	run(conn{ControlFD})
	os.Exit(0)
}

// stage holds the state of a stage process.
type stage struct {
	conn
	sending   sync.Mutex
	seal      Restrictions
	tcpBefore int64 // bytes in buffers of TCP sockets before commands started
	listen    int
	noOverlay string // why an overlay could not be mounted

	execs   chan request
	mu      sync.Mutex // also held while a command starts; see reap
	running map[int]*command
	started chan struct{} // signals that there is a child to reap
	busy    chan struct{} // signals that there is a command to watch
}

// request is an action to perform on the restricted thread.
type request struct {
	exec Exec
	fds  []int
}

// command holds the PID of a running command and, if the command was killed,
// the reason.
type command struct {
	id, pid int
	oom     bool
	full    bool
}

func run(c conn) {
	closeInherited()
	syscall.CloseOnExec(ControlFD)
	s := &stage{conn: c, listen: -1, execs: make(chan request), running: map[int]*command{}, started: make(chan struct{}, 1), busy: make(chan struct{}, 1)}
	abi, err := s.prepare()
	ready := Ready{Landlock: abi, Overlay: s.noOverlay}
	if err != nil {
		ready.Error = err.Error()
		if e, ok := err.(*stepError); ok {
			ready.Step = e.step
			if n, ok := e.err.(syscall.Errno); ok {
				ready.Errno = int(n)
			}
		}
	}
	if err != nil || s.listen < 0 {
		s.reply(KindReady, ready)
	} else {
		s.reply(KindReady, ready, s.listen)
		syscall.Close(s.listen)
	}
	if err != nil {
		return
	}
	if isInit() {
		resetSignals()
	}
	go s.dispatch()
	go s.reap()
	if s.seal.Memory > 0 {
		if b, err := readProc("net", "sockstat"); err == nil && s.seal.GrowingTCP {
			s.tcpBefore = parseSockets(b).tcpMemory
		}
		go s.watch()
	}
	for r := range s.execs {
		s.start(r)
	}
	s.killAll()
}

func (s *stage) reply(kind uint32, body any, fds ...int) {
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.send(kind, body, fds...) != nil {
		s.killAll()
		os.Exit(0) // the process that started the stage has exited
	}
}

// prepare handles setup messages until the sandbox is restricted.
func (s *stage) prepare() (abi int, err error) {
	var filter []byte
	for {
		kind, size, _, err := s.readHeader()
		if err != nil {
			os.Exit(0)
		}
		switch kind {
		case KindSetup:
			var setup Setup
			if err := s.readBody(size, &setup); err != nil {
				return 0, wrapStep(err, "read instructions")
			}
			if s.noOverlay, err = setup.buildView(); err != nil {
				return 0, err
			}
			if setup.Listen != 0 {
				if s.listen, err = listen(setup.Listen); err != nil {
					return 0, wrapStep(err, "listen for the proxy")
				}
			}
		case KindFile:
			var f File
			if err := s.readBody(size, &f); err != nil {
				return 0, wrapStep(err, "read instructions")
			}
			if err := s.writeFileData(f); err != nil {
				return 0, wrapStep(err, "write %s", f.Path)
			}
		case KindFilter:
			filter = make([]byte, size)
			if err := s.read(filter); err != nil {
				os.Exit(0)
			}
		case KindRestrict:
			if err := s.readBody(size, &s.seal); err != nil {
				return 0, wrapStep(err, "read instructions")
			}
			return s.restrictSelf(filter)
		default:
			return 0, wrapStep(syscall.EPROTO, "read instructions")
		}
	}
}

// writeFileData writes a file whose content follows in data messages.
func (s *stage) writeFileData(f File) error {
	makeParents(f.Path)
	fd, err := syscall.Open(f.Path, syscall.O_CREAT|syscall.O_WRONLY|syscall.O_CLOEXEC|syscall.O_NOFOLLOW|syscall.O_EXCL, f.Mode)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	buf := make([]byte, 64<<10)
	for left := f.Size; left > 0; {
		kind, size, _, err := s.readHeader()
		if err != nil {
			os.Exit(0)
		}
		if kind != KindData || int64(size) > left {
			return syscall.EPROTO
		}
		for size > 0 {
			b := buf[:min(len(buf), size)]
			if err := s.read(b); err != nil {
				os.Exit(0)
			}
			for part := b; len(part) > 0; {
				n, err := syscall.Write(fd, part)
				if err != nil {
					return err
				}
				part = part[n:]
			}
			size, left = size-len(b), left-int64(len(b))
		}
	}
	return nil
}

// restrictSelf applies the restrictions to this process.
func (s *stage) restrictSelf(filter []byte) (abi int, err error) {
	l := &s.seal
	syscall.Umask(0o022) // the default that programs expect
	for _, p := range l.ReadOnly {
		if err := setAttrAt(p, attrReadOnly|attrNoSUID|attrNoDev); err != nil {
			return 0, wrapStep(err, "make %s read-only", p)
		}
	}
	spareThreads(l.Threads)
	if l.Nice > 0 {
		syscall.Setpriority(syscall.PRIO_PROCESS, 0, l.Nice) // the priority is optional, so errors are ignored
	}
	for _, r := range l.Rlimits {
		if err := setrlimit(r); err != nil {
			return 0, wrapStep(err, "set resource limit %d", r.Resource)
		}
	}
	if err := prctl(prSetDumpable, 0, 0); err != nil {
		return 0, wrapStep(err, "hide the first process")
	}
	if l.Caps {
		if err := dropCapabilities(); err != nil {
			return 0, wrapStep(err, "drop capabilities")
		}
	}
	if err := prctl(prSetNoNewPrivs, 1, 0); err != nil {
		return 0, wrapStep(err, "set no_new_privs")
	}
	if l.Landlock != nil {
		if abi, err = l.Landlock.restrict(); err != nil {
			return abi, wrapStep(err, "Landlock")
		}
	}
	if l.Seccomp {
		if err := loadFilter(filter); err != nil {
			return abi, wrapStep(err, "seccomp")
		}
	}
	return abi, nil
}

// spareThreads creates n idle threads for the Go runtime, which cannot create
// more once commands have filled the process table.
func spareThreads(n int) {
	var all sync.WaitGroup
	gate := make(chan struct{})
	for range n {
		all.Go(func() {
			runtime.LockOSThread()
			<-gate
			runtime.UnlockOSThread()
		})
		runtime.Gosched()
	}
	close(gate)
	all.Wait()
}
