package hub

import (
	"io"
	"strings"
	"testing"
)

func TestRequestBodyHasEndedOnceItIsRead(t *testing.T) {
	b := &requestBody{ReadCloser: io.NopCloser(strings.NewReader("text"))}
	if _, err := b.Read(make([]byte, 2)); err != nil || b.ended.Load() {
		t.Errorf("after half of it: error %v, ended %t", err, b.ended.Load())
	}
	if _, err := io.ReadAll(b); err != nil || !b.ended.Load() {
		t.Errorf("after all of it: error %v, ended %t", err, b.ended.Load())
	}
}
