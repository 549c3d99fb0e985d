package filetype_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/filetype"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"a.JSON", "\x00", "application/json"}, {"README", "text", "text/plain"}, {"data", "\x00", "application/octet-stream"}, {"empty", "", "application/octet-stream"},
		{"one", "a", "text/plain"}, {"a.b/c", "a", "text/plain"}, {"photo.WebP", "a", "image/webp"},
	} {
		if got := filetype.Of(tt.name, []byte(tt.data)); got != tt.want {
			t.Errorf("Of(%q, %q) = %q, want %q", tt.name, tt.data, got, tt.want)
		}
	}
}

func TestIsTextFile(t *testing.T) {
	for _, tt := range []struct {
		name, data string
		want       bool
	}{
		{"a.json", "\xff", true}, {"a.svg", "\xff", true}, {"a.sql", "\x00", true}, // shown as text, whatever they contain
		{"a.md", "\xff", true}, {"LICENSE", "text", true}, {"a.pdf", "text", true}, {"a.png", "\x89PNG", false}, {"x", "\x00", false},
	} {
		if got := filetype.IsTextFile(tt.name, []byte(tt.data)); got != tt.want {
			t.Errorf("IsTextFile(%q, %q) = %t", tt.name, tt.data, got)
		}
	}
}

func TestImage(t *testing.T) {
	for data, want := range map[string]string{
		"\x89PNG\r\n\x1a\nIHDR": "image/png", "\xff\xd8\xff\xe0": "image/jpeg", "GIF87a": "image/gif", "GIF89a": "image/gif",
		"RIFF\x01\x02\x03\x04WEBPV": "image/webp",
		// Parts of images, and other formats in the same container.
		"RIFF\x01\x02\x03\x04WEBP": "", "RIFF\x01\x02\x03\x04WAVEf": "", "xIFF\x01\x02\x03\x04WEBPV": "", "RIFF": "", "": "",
		"\x89PNG": "", "GIF88a": "", "<svg>" + strings.Repeat(" ", 20): "",
	} {
		if got := filetype.Image([]byte(data)); got != want {
			t.Errorf("Image(%q) = %q, want %q", data, got, want)
		}
	}
}
