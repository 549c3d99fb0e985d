package launcher

import (
	"fmt"
	"testing"
)

// Go says first why a program ends, and then what each goroutine was at.
func TestCrashIsReportedWithReason(t *testing.T) {
	var h headBuffer
	fmt.Fprint(&h, "\nfatal error: ")
	fmt.Fprint(&h, "all is lost\n\n")
	for i := range 1000 {
		fmt.Fprintf(&h, "goroutine %d [running]:\n", i)
	}
	if got, want := h.firstLine(), "fatal error: all is lost"; got != want {
		t.Errorf("line() = %q, want %q", got, want)
	}
	if len(h.b) > 4<<10 {
		t.Errorf("kept %d bytes", len(h.b))
	}
}
