//go:build linux

package sandboxtest

import (
	"bytes"
	"io"
	"net"
	"regexp"
	"sync"
	"time"
)

// networks are the attacks by sockets.
func networks() []attack {
	layer := []string{"network"}
	return []attack{
		{"C01", "TCP to 127.0.0.1", layer, nil, reaches("C01", "tcp", func(a at) []string { return []string{"tcp", a.TCP} })},
		{"C02", "TCP to the host's address in its network", layer, []need{needAddress("LAN address", func(a at) string { return a.LAN })},
			reaches("C02", "lan", func(a at) []string { return []string{"tcp", a.LAN} })},
		{"C03", "UDP out, as DNS", layer, []need{needAddress("UDP", func(a at) string { return a.UDP })},
			reaches("C03", "udp", func(a at) []string { return []string{a.UDP} })},
		{"C04", "TCP to ::1", layer, []need{needAddress("IPv6", func(a at) string { return a.TCP6 })},
			reaches("C04", "tcp6", func(a at) []string { return []string{"tcp", a.TCP6} })},
		{"C05", "abstract unix socket of the host", layer, nil, reaches("C05", "abstract", func(a at) []string { return []string{"unix", a.Abstract} })},
		{"C06", "unix socket by its path", append(layer, "filesystem"), nil, reaches("C06", "unix", func(a at) []string { return []string{"unix", a.Unix} })},
		{"C07", "netlink, raw, packet and alg sockets", []string{"syscalls"}, []need{needFeature("odd")}, told("C07")},
		{"C08", "AF_VSOCK", []string{"syscalls"}, []need{needFeature("vsock")}, told("C08")},
		{"C09", "io_uring", []string{"syscalls"}, []need{needFeature("io_uring")}, told("C09")},
		{"C11", "listen where the host is reached", layer, nil, listens},
	}
}

func needFeature(name string) need { return func(s *scene) string { return s.feature(name) } }

func needAddress(what string, of func(at) string) need {
	return func(s *scene) string {
		if of(s.victim.at) == "" {
			return "no " + what + " here"
		}
		return ""
	}
}

// reaches is an attack that a counter of the victim decides.
func reaches(id, counter string, args func(at) []string) func(*trial) bool {
	return func(x *trial) bool {
		before := x.victim.counts(x.t)
		_, sent := x.attack(id, args(x.victim.at)...)
		return x.victim.grew(x.t, before, sent, counter)
	}
}

// listens has the payload listen, and the host go there.
func listens(x *trial) bool {
	secret := word()
	got := make(chan bool, 1)
	tee := &portWatcher{found: func(port string) { go func() { got <- fetches("127.0.0.1:"+port, secret) }() }}
	res := x.exec(tee, "C11", secret)
	x.started(res)
	x.note(lastLine(res.Stdout))
	if !tee.seen() {
		return false
	}
	return <-got
}

// fetches reports whether what listens at addr says secret.
func fetches(addr, secret string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	b, _ := io.ReadAll(io.LimitReader(c, 256))
	return bytes.Contains(b, []byte(secret))
}

// portWatcher finds the port in the output of the payload.
type portWatcher struct {
	found func(string)

	mu   sync.Mutex
	text []byte // guarded by mu
	done bool   // guarded by mu
}

var portLine = regexp.MustCompile(`PORT (\d+)\n`)

func (w *portWatcher) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	if m := portLine.FindSubmatch(w.text); m != nil && !w.done {
		w.done = true
		w.found(string(m[1]))
	}
	return len(b), nil
}

func (w *portWatcher) seen() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}
