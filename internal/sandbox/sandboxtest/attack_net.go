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

// networkAttacks returns the attacks that use sockets.
func networkAttacks() []attack {
	layer := []string{"network"}
	return []attack{
		{"C01", "TCP to 127.0.0.1", layer, nil, connectsToVictim("C01", "tcp", func(a addresses) []string { return []string{"tcp", a.TCP} })},
		{"C02", "TCP to the host's address in its network", layer, []need{needAddress("LAN address", func(a addresses) string { return a.LAN })},
			connectsToVictim("C02", "lan", func(a addresses) []string { return []string{"tcp", a.LAN} })},
		{"C03", "UDP out, as DNS", layer, []need{needAddress("UDP", func(a addresses) string { return a.UDP })},
			connectsToVictim("C03", "udp", func(a addresses) []string { return []string{a.UDP} })},
		{"C04", "TCP to ::1", layer, []need{needAddress("IPv6", func(a addresses) string { return a.TCP6 })},
			connectsToVictim("C04", "tcp6", func(a addresses) []string { return []string{"tcp", a.TCP6} })},
		{"C05", "abstract unix socket of the host", layer, nil, connectsToVictim("C05", "abstract", func(a addresses) []string { return []string{"unix", a.Abstract} })},
		{"C06", "unix socket by its path", append(layer, "filesystem"), nil, connectsToVictim("C06", "unix", func(a addresses) []string { return []string{"unix", a.Unix} })},
		{"C07", "netlink, raw, packet and alg sockets", []string{"syscalls"}, []need{needFeature("odd")}, reportsBreach("C07")},
		{"C08", "AF_VSOCK", []string{"syscalls"}, []need{needFeature("vsock")}, reportsBreach("C08")},
		{"C09", "io_uring", []string{"syscalls"}, []need{needFeature("io_uring")}, reportsBreach("C09")},
		{"C11", "listen on a port that the host can reach", layer, nil, acceptsFromHost},
	}
}

func needFeature(name string) need { return func(s *scene) string { return s.feature(name) } }

func needAddress(what string, of func(addresses) string) need {
	return func(s *scene) string {
		if of(s.victim.addresses) == "" {
			return "no " + what + " here"
		}
		return ""
	}
}

// connectsToVictim runs an attack and reports whether a counter of the victim
// increased.
func connectsToVictim(id, counter string, args func(addresses) []string) func(*trial) bool {
	return func(x *trial) bool {
		before := x.victim.readCounters(x.t)
		_, sent := x.attack(id, args(x.victim.addresses)...)
		return x.victim.counterGrew(x.t, before, sent, counter)
	}
}

// acceptsFromHost makes the payload listen, and reports whether the host can
// connect to it.
func acceptsFromHost(x *trial) bool {
	secret := randomWord()
	got := make(chan bool, 1)
	tee := &portWatcher{found: func(port string) { go func() { got <- servesSecret("127.0.0.1:"+port, secret) }() }}
	res := x.exec(tee, "C11", secret)
	x.requireStart(res)
	x.note(lastLine(res.Stdout))
	if !tee.hasPort() {
		return false
	}
	return <-got
}

// servesSecret reports whether the server at addr sends the secret.
func servesSecret(addr, secret string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	b, _ := io.ReadAll(io.LimitReader(c, 256))
	return bytes.Contains(b, []byte(secret))
}

// portWatcher is a writer that finds the port in the payload's output.
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

func (w *portWatcher) hasPort() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}
