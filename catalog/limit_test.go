package catalog

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestLimit(t *testing.T) {
	dir := os.Getenv("SKDIR")
	if dir == "" {
		t.Skip("x")
	}
	for range 10 {
		c0, w0 := cpu(), time.Now()
		d, _ := openDir(dir)
		names, _ := d.list(make([]byte, 32768))
		buf := make([]byte, 4096)
		n := 0
		for _, e := range names {
			m, _, err := d.readHead(e.name+"/SKILL.md", buf)
			if err == nil {
				n += m
			}
		}
		d.close()
		l := cpu() - c0
		c0, w0 = cpu(), time.Now()
		dd := NewDir("a", User, dir, nil)
		dd.List(context.Background())
		t.Log("limit", l, "list", cpu()-c0, time.Since(w0), n)
	}
}
