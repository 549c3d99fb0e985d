package chat

import (
	"encoding/base64"
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
		var sizes []int64
		changes, before := 0, 0
		for range 100 {
			for range tt.perMessage {
				sizes = append(sizes, int64(base64.StdEncoding.EncodedLen(int(tt.size))))
			}
			first := firstSent(sizes)
			sent := len(sizes) - first
			if sent > maxSent || int64(sent)*sizes[0] > maxSentBytes || sent < tt.perMessage {
				t.Fatalf("%+v: %d of %d images are sent", tt, sent, len(sizes))
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

// Exports contain as many images as an import keeps.
func TestEmbeddedImages(t *testing.T) {
	added := func(n, size int) (count int) {
		m := embeddedImages{hashes: map[string]string{}}
		data := make([]byte, size)
		for i := range n {
			if m.add(fmt.Sprint(i), data) {
				count++
			}
		}
		return count
	}
	if got := added(101, 1); got != 100 {
		t.Errorf("an export contains %d images", got)
	}
	if got := added(3, 32<<20); got != 2 {
		t.Errorf("an export contains %d images of 32 MiB", got)
	}
}
