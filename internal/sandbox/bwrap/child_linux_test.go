package bwrap

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The status of bubblewrap names the child. If bubblewrap has exited, the reason is
// reported elsewhere.
func TestStatusOfBubblewrap(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for status, want := range map[string]string{
		`{"child-pid": ` + own + `}`: "", "": "", `{"child-pid": `: "", `{}`: "did not report the PID", `{"child-pid": 0}`: "did not report the PID",
		`{"child-pid": -1}`: "did not report the PID", `{"child-pid": "x"}`: "start bubblewrap", `no JSON`: "start bubblewrap",
	} {
		c := &child{}
		err := c.attach(nil, strings.NewReader(status))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("status %q: %v, want %q", status, err, want)
		}
		if known := c.fd != 0; known != strings.Contains(status, own) {
			t.Errorf("status %q: the child is known: %t", status, known)
		}
		if c.fd != 0 {
			unix.Close(c.fd)
		}
	}
}
