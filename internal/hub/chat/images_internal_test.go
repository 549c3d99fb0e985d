package chat

import (
	"fmt"
	"testing"
)

// A request contains the last images that fit, including all of the last message. Its
// first image changes rarely.
func TestFirstSent(t *testing.T) {
	for _, tt := range []struct {
		size       int64
		perMessage int
	}{{1, MaxImages}, {1, 1}, {MaxImage, 1}, {MaxImage, 2}, {MaxImageBytes / MaxImages, MaxImages}} {
		var refs []string
		sizes := map[string]int64{}
		changes, before := 0, 0
		for range 100 {
			for range tt.perMessage {
				ref := fmt.Sprint(len(refs))
				refs, sizes[ref] = append(refs, ref), tt.size
			}
			first := firstSent(refs, sizes)
			sent := len(refs) - first
			if sent > maxSent || int64(sent)*tt.size > maxSentBytes || sent < tt.perMessage {
				t.Fatalf("%+v: %d of %d images are sent", tt, sent, len(refs))
			}
			if first != before {
				changes, before = changes+1, first
			}
		}
		if tt.perMessage == 1 && tt.size == 1 && changes > 10 {
			t.Errorf("%+v: the first image changes %d times in 100 messages", tt, changes)
		}
	}
}
