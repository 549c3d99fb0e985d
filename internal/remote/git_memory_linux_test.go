package remote

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// pkt is a line of git's protocol.
func pkt(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// flood writes refs until the reader stops, and counts the bytes.
func flood(w io.Writer, sent *atomic.Int64) {
	name := strings.Repeat("a/", 2000)
	for i := 0; ; i++ {
		n, err := io.WriteString(w, pkt(fmt.Sprintf("%040x refs/heads/%s%d\n", i+1, name, i)))
		if sent.Add(int64(n)); err != nil {
			return
		}
	}
}

// before is a server that answers what handle reports to have answered, and has the
// repository answer all else.
func before(t *testing.T, g *remotetest.Git, handle func(http.ResponseWriter, *http.Request) bool) Location {
	behind, err := url.Parse(g.Path(""))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !handle(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	return Location{Kind: Git, URL: front.URL + "/repo.git"}
}

const advertisement = "application/x-git-upload-pack-advertisement"

// Git is not used for the list, because it would keep the list in memory.
func TestEndlessRefListIsCutOff(t *testing.T) {
	g := remotetest.NewGit(t)
	var sent atomic.Int64
	l := before(t, g, func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", advertisement)
		io.WriteString(w, pkt("# service=git-upload-pack\n")+"0000")
		flood(w, &sent)
		return true
	})
	c := resolved(t, Options{})
	if _, err := c.Latest(t.Context(), l); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("latest: %v", err)
	}
	if _, err := c.Open(t.Context(), l); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("look: %v", err)
	}
	// Pipes and sockets buffer some more.
	if most := int64(2 * (maxRefBytes + 32<<20)); sent.Load() > most {
		t.Errorf("%d bytes were read, more than %d", sent.Load(), most)
	}
}

// The server sends a valid list to us, and one to git that exceeds its memory.
func TestGitMemoryLimit(t *testing.T) {
	var sent atomic.Int64
	abilities := pkt("version 2\n") + pkt("ls-refs=unborn\n") + pkt("fetch=shallow\n") + pkt("object-format=sha1\n") + "0000"
	asksV2 := func(r *http.Request) bool { return strings.Contains(r.Header.Get("Git-Protocol"), "version=2") }
	for name, handle := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"refs without end in the first answer": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !asksV2(r) {
				return false
			}
			w.Header().Set("Content-Type", advertisement)
			io.WriteString(w, pkt("# service=git-upload-pack\n")+"0000")
			flood(w, &sent)
			return true
		},
		"the same, compressed": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !asksV2(r) {
				return false
			}
			w.Header().Set("Content-Type", advertisement)
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			io.WriteString(packed, pkt("# service=git-upload-pack\n")+"0000")
			flood(packed, &sent)
			return true
		},
		"refs without end": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			flood(w, &sent)
			return true
		},
		"a pack of billions of objects": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet && asksV2(r) {
				w.Header().Set("Content-Type", advertisement)
				io.WriteString(w, pkt("# service=git-upload-pack\n")+"0000"+abilities)
				return true
			}
			body, _ := io.ReadAll(r.Body)
			if r.Body = io.NopCloser(bytes.NewReader(body)); !bytes.Contains(body, []byte("command=fetch")) {
				return false
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			header := "PACK\x00\x00\x00\x02\x70\x00\x00\x00"
			io.WriteString(w, pkt("packfile\n")+pkt("\x01"+header)+"0000")
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := remotetest.NewGit(t)
			g.Commit(map[string]string{"pdf/SKILL.md": minimal})
			checkMemory(t, before(t, g, handle), 64<<20)
		})
	}
}

// A few kilobytes unfold to a quarter of a gigabyte.
func TestDeltaBombIsNotExpanded(t *testing.T) {
	g := remotetest.NewGit(t)
	git := func(in []byte, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"--git-dir=" + g.Dir, "-c", "user.name=A Test", "-c", "user.email=test@example.com"}, args...)...)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	const base, copies = 4 << 20, 64
	pack := bomb(base, copies)
	if len(pack) > 16<<10 {
		t.Fatalf("the pack has %d bytes", len(pack))
	}
	git(pack, "index-pack", "--stdin")
	readme := git([]byte(minimal), "hash-object", "-w", "--stdin")
	tree := git(fmt.Appendf(nil, "100644 blob %s\tSKILL.md\n100644 blob %s\tbase\n100644 blob %s\tbomb\n", readme, zerosID(base), zerosID(base*copies)), "mktree")
	g.Ref("refs/heads/main", git(nil, "commit-tree", "-m", "bomb", tree))
	l := Location{Kind: Git, URL: g.URL}
	checkMemory(t, l, 128<<20)

	o, err := lookWithin(t, l, 1<<30) // or the bomb would be none
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// checkMemory looks at a place that git cannot look at with so much memory.
func checkMemory(t *testing.T, l Location, memory int64) {
	t.Helper()
	_, err := lookWithin(t, l, memory)
	if gitFailureReason(err) != outOfMemory || !strings.Contains(err.Error(), fmt.Sprintf("memory limit of %d MiB", memory>>20)) {
		t.Errorf("got %v", err)
	}
}

func lookWithin(t *testing.T, l Location, memory int64) (*Collection, error) {
	t.Helper()
	c := resolved(t, Options{})
	program, err := c.gitProgram()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := c.startSession(t.Context(), l)
	defer cancel()
	g, err := c.newGit(ctx, program, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	})
	g.memory = memory
	return g.collect(ctx)
}

// bomb is a pack with size zeros, and so many copies of them by a delta.
func bomb(size, copies int) []byte {
	out := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x02")
	base := len(out)
	out = packed1(out, 3, nil, make([]byte, size))
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), uint64(size*copies))
	const most = 0xffffff // of one copy
	for range copies {
		for left := size; left > 0; left -= min(left, most) {
			n := min(left, most)
			delta = append(delta, 0xf0, byte(n), byte(n>>8), byte(n>>16))
		}
	}
	out = packed1(out, 6, offset(len(out)-base), delta)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// packed1 appends an object to a pack.
func packed1(pack []byte, kind byte, behind, content []byte) []byte {
	n := len(content)
	first := kind<<4 | byte(n&15)
	if n >>= 4; n > 0 {
		pack = binary.AppendUvarint(append(pack, first|0x80), uint64(n))
	} else {
		pack = append(pack, first)
	}
	var b bytes.Buffer
	b.Write(append(pack, behind...))
	z := zlib.NewWriter(&b)
	z.Write(content)
	z.Close()
	return b.Bytes()
}

// offset is how git writes how far before an object its base is.
func offset(n int) []byte {
	out := []byte{byte(n & 127)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		out = append([]byte{byte(n&127) | 0x80}, out...)
	}
	return out
}

// zerosID is the name of a file of n zeros.
func zerosID(n int) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", n)
	block := make([]byte, 1<<20)
	for range n >> 20 {
		h.Write(block)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
