package container

import (
	"archive/tar"
	"testing"
)

func TestIsSparse(t *testing.T) {
	for _, tt := range []struct {
		records map[string]string
		want    bool
	}{
		{nil, false},
		{map[string]string{"mtime": "1.5", "path": "GNU.sparse.txt"}, false},
		{map[string]string{"mtime": "1.5", "GNU.sparse.major": "1"}, true},
	} {
		if got := isSparse(&tar.Header{PAXRecords: tt.records}); got != tt.want {
			t.Errorf("records %v: got %t, want %t", tt.records, got, tt.want)
		}
	}
}
