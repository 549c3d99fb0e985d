package stage

import (
	"os"
	"syscall"
	"testing"
)

func TestParseStatus(t *testing.T) {
	const status = "Name:\tx\nRssAnon:\t     100 kB\nRssFile:\t     999 kB\nRssShmem:\t      20 kB\nVmPTE:\t      48 kB\nVmSwap:\t       3 kB\nHugetlbPages:\t    2048 kB\nThreads:\t7\nFDSize:\t64\n"
	u, threads := parseStatus([]byte(status))
	if want := (usage{pages: (100 + 20 + 3 + 2048) << 10, tables: 48 << 10, slots: 64}); u != want || threads != 7 {
		t.Errorf("got %+v, %d threads, want %+v, 7", u, threads, want)
	}
}

func TestStatusOfThisProcess(t *testing.T) {
	u, err := readUsage(os.Getpid())
	if err != nil || u.pages == 0 || u.tables == 0 || u.id != os.Getpid() {
		t.Errorf("got %+v, %v", u, err)
	}
}

func TestParseSockets(t *testing.T) {
	got := parseSockets([]byte("sockets: used 14\nTCP: inuse 3 orphan 0 tw 0 alloc 5 mem 7\nUDP: inuse 9 mem 9\n"))
	if want := (sockets{used: 14, tcp: 3, tcpMemory: 7 * int64(os.Getpagesize())}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A program can choose the name in its status, but not add lines or make a
// number negative.
func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("Name:\tx\nRssAnon:\t     100 kB\nThreads:\t7\n"))
	f.Add([]byte("RssAnon:\t1 kB"))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, _ := parseStatus(b)
		more, _ := parseStatus(append([]byte("RssAnon:\t1 kB\n"), b...))
		if more.pages != u.pages+1<<10 || more.tables != u.tables {
			t.Errorf("a line before %q changed %+v to %+v", b, u, more)
		}
	})
}

// A socket that is open twice counts once.
func TestCountSockets(t *testing.T) {
	of := []usage{{id: os.Getpid(), slots: 64}}
	before := countSockets(of)
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := syscall.Dup(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range append(fds[:], again) {
		defer syscall.Close(fd)
	}
	if n := countSockets(append(of, of...)) - before; n != 2 {
		t.Errorf("%d sockets more, want 2", n)
	}
	if all, sockets := countDescriptors(of), countSockets(of); all < sockets {
		t.Errorf("%d descriptors, %d of them sockets", all, sockets)
	}
}
