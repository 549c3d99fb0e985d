package catalog

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func cpu() time.Duration {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func TestScanCost(t *testing.T) {
	dir := os.Getenv("SKDIR")
	if dir == "" {
		t.Skip("no dir")
	}
	idx := t.TempDir() + "/idx"
	ctx := context.Background()
	for range 4 {
		os.Remove(idx)
		d := NewDir("a", User, dir, &DirOptions{IndexFile: idx})
		c, _ := New([]Source{d}, nil)
		c0, w0 := cpu(), time.Now()
		c.Reload(ctx)
		t.Log("scan", cpu()-c0, time.Since(w0), len(c.Snapshot().Skills()))
		c0 = cpu()
		c.Reload(ctx)
		t.Log("rescan racy", cpu()-c0)
		time.Sleep(2100 * time.Millisecond)
		c.Reload(ctx)
		c0 = cpu()
		c.Reload(ctx)
		t.Log("rescan", cpu()-c0)
		d2 := NewDir("a", User, dir, &DirOptions{IndexFile: idx})
		c2, _ := New([]Source{d2}, nil)
		runtime.GC()
		c0 = cpu()
		c2.Reload(ctx)
		t.Log("restart", cpu()-c0, len(c2.Snapshot().Skills()))
		var m runtime.MemStats
		c, d = nil, nil
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		t.Log("heap", m.HeapAlloc>>10)
		runtime.KeepAlive(c2)
	}
}
