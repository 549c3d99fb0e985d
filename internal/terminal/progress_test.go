package terminal

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := NewProgress(&out, func() int { return 16 })
		done := p.Begin("reading")
		time.Sleep(300 * time.Millisecond)
		done()
		if out.Len() > 0 {
			t.Errorf("a short operation was shown: %q", out.String())
		}
		done = p.Begin("reading")
		time.Sleep(1100 * time.Millisecond)
		p.Report("reading: 3 of 10")
		time.Sleep(200 * time.Millisecond)
		done()
		done()
		got := out.String()
		for _, want := range []string{"\rreading … 0s", "\rreading … 1s", "\rreading: 3 of…"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %q", want, got)
			}
		}
		if !strings.HasSuffix(got, "\r"+strings.Repeat(" ", 14)+"\r") {
			t.Errorf("not erased: %q", got)
		}
		out.Reset()
		done = p.Begin("checking")
		time.Sleep(500 * time.Millisecond)
		done()
		if got := out.String(); !strings.HasPrefix(got, "\rchecking … 0s\r") {
			t.Errorf("the next operation starts with %q", got)
		}
		var none *Progress
		none.Report("x")
		none.Begin("x")()
	})
}
