package hub_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// The disk of a hub on SQLite fills up: uploads are refused with advice, everything else
// continues, nothing is stored partially, and uploads work again when there is space.
// Only root can create a small disk.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Skip("a small disk cannot be made:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	h := newHub(t, "", "")
	n := h.startIn(dir)
	kept, full := []string{}, false
	for i := 0; i < 30 && !full; i++ {
		name := fmt.Sprint("skill-", i)
		noise := make([]byte, 1<<20) // which cannot be packed
		rand.Read(noise)
		r := n.send("POST", "/api/v1/skills?file_name="+name+".zip", pack(t, name, "Read it.", "noise.bin", string(noise)))
		switch r.status {
		case 201:
			kept = append(kept, r.text(t, "id"))
		case 507:
			full = true
			if !strings.Contains(r.body, `"disk_full"`) || !strings.Contains(r.body, "free disk space") || strings.Contains(r.body, dir) {
				t.Errorf("got %s", r.body)
			}
		default:
			t.Fatalf("status %d: %s", r.status, r.body)
		}
	}
	if !full || len(kept) == 0 {
		t.Fatalf("%d skills were stored, and the disk is not full", len(kept))
	}
	if ok, status := n.ready(); !ok || !strings.Contains(status, "disk: full") {
		t.Errorf("readiness is %s", status)
	}
	has := func(want int) {
		t.Helper()
		var page struct{ Items []struct{ ID string } }
		n.send("GET", "/api/v1/skills?namespace=default&limit=200", nil).want(t, 200).into(t, &page)
		if len(page.Items) != want {
			t.Errorf("there are %d skills, want %d", len(page.Items), want)
		}
	}
	has(len(kept))
	for _, id := range kept {
		n.send("GET", "/api/v1/skills/"+id+"/versions/1/package", nil).want(t, 200)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	n.send("POST", "/api/v1/skills?file_name=more.zip", pack(t, "more", "Read it.")).want(t, 201)
	has(len(kept) + 1)
	if code, output := n.run("serve", "--check"); code != 0 || !strings.Contains(output, "No problems found") {
		t.Errorf("exit code %d: %s", code, output)
	}
	n.stop()
}
