//go:build unix

package rundir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

func newDir(t *testing.T, spec *sandbox.Spec) *Dir {
	t.Helper()
	b, err := New(options(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func options(t *testing.T) Options {
	return Options{Backend: "x", Parent: filepath.Join(t.TempDir(), "run"), Cache: t.TempDir()}
}

func tree(path string, files map[string]string) sandbox.Tree {
	fsys := fstest.MapFS{}
	t := sandbox.Tree{Path: path, FS: fsys}
	for p, data := range files {
		fsys[p] = &fstest.MapFile{Data: []byte(data)}
		sum := sha256.Sum256([]byte(data))
		t.Files = append(t.Files, sandbox.File{Path: p, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Exec: strings.HasSuffix(p, ".sh")})
	}
	return t
}

func TestLayout(t *testing.T) {
	work, other := t.TempDir(), t.TempDir()
	spec := &sandbox.Spec{
		Trees:   []sandbox.Tree{tree(mountpoint.Skill, map[string]string{"run.sh": "run", "a/b.txt": "b"}), tree(mountpoint.In, map[string]string{"d/e/in.txt": "in", "d/e/run.sh": "x"})},
		Secrets: []sandbox.Secret{sandbox.NewSecret("token", "s3cret")},
		Mounts:  []sandbox.Mount{{Path: mountpoint.Workspace, Host: work, Writable: true}, {Path: other, Host: other}},
	}
	b := newDir(t, spec)
	for p, want := range map[string]string{
		mountpoint.Skill + "/run.sh": "run", mountpoint.Skill + "/a/b.txt": "b",
		mountpoint.In + "/d/e/in.txt": "in", mountpoint.Secrets + "/token": "s3cret",
	} {
		if got, err := os.ReadFile(b.Root + p); string(got) != want {
			t.Errorf("%s contains %q, %v", p, got, err)
		}
	}
	for p, want := range map[string]os.FileMode{
		mountpoint.In + "/d/e/in.txt": 0o644, mountpoint.In + "/d/e/run.sh": 0o755, mountpoint.In + "/d": os.ModeDir | 0o755, mountpoint.Secrets + "/token": 0o400,
		mountpoint.Out: os.ModeDir | 0o755, mountpoint.Tmp: os.ModeDir | 0o755, mountpoint.Skill: os.ModeSymlink | 0o777, "": os.ModeDir | 0o700,
	} {
		if fi, err := os.Lstat(b.Root + p); err != nil || fi.Mode() != want {
			t.Errorf("%s: %v, want mode %v", p, err, want)
		}
	}
	skill, err := os.Readlink(b.Root + mountpoint.Skill)
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{mountpoint.Skill: skill, mountpoint.Workspace: work, mountpoint.Work: b.Root + mountpoint.Work, other: b.Root + other} {
		if got := b.HostPath(p); got != want {
			t.Errorf("%s is %s on the host, want %s", p, got, want)
		}
	}
	if !slices.Equal(b.Read, []string{skill, work, other}) || !slices.Equal(b.Write, []string{work}) {
		t.Errorf("code may read %v and write %v", b.Read, b.Write)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(b.Root)); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestNewFails(t *testing.T) {
	changed := tree(mountpoint.Skill, map[string]string{"a": "b"})
	changed.FS = fstest.MapFS{"a": {Data: []byte("c")}}
	input := changed
	input.Path = mountpoint.In
	is := func(target any) func(error) bool {
		return func(err error) bool { return errors.As(err, target) }
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		spec   sandbox.Spec
		change func(*Options)
		want   func(error) bool
	}{
		"a changed skill":         {sandbox.Spec{Trees: []sandbox.Tree{changed}}, nil, is(new(*sandbox.ChangedError))},
		"a changed input":         {sandbox.Spec{Trees: []sandbox.Tree{input}}, nil, is(new(*sandbox.ChangedError))},
		"two trees at a path":     {sandbox.Spec{Trees: []sandbox.Tree{tree(mountpoint.Skill, nil), tree(mountpoint.Skill, nil)}}, nil, func(err error) bool { return errors.Is(err, fs.ErrExist) }},
		"two inputs at a path":    {sandbox.Spec{Trees: []sandbox.Tree{tree(mountpoint.In, map[string]string{"a": ""}), tree(mountpoint.In, map[string]string{"a": ""})}}, nil, func(err error) bool { return errors.Is(err, fs.ErrExist) }},
		"an input below a file":   {sandbox.Spec{Trees: []sandbox.Tree{tree(mountpoint.In, map[string]string{"a": ""}), tree(mountpoint.In, map[string]string{"a/b": ""})}}, nil, func(err error) bool { return err != nil }},
		"two secrets of a name":   {sandbox.Spec{Secrets: []sandbox.Secret{sandbox.NewSecret("a/b", "x")}}, nil, func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		"a mount elsewhere":       {sandbox.Spec{Mounts: []sandbox.Mount{{Path: "/elsewhere", Host: file}}}, nil, is(new(*sandbox.UnsupportedError))},
		"a missing mount":         {sandbox.Spec{Mounts: []sandbox.Mount{{Path: file + "x", Host: file + "x"}}}, nil, func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		"two workspaces":          {sandbox.Spec{Mounts: []sandbox.Mount{{Path: mountpoint.Workspace, Host: file}, {Path: mountpoint.Workspace, Host: file}}}, nil, func(err error) bool { return errors.Is(err, fs.ErrExist) }},
		"a parent that is a file": {sandbox.Spec{}, func(o *Options) { o.Parent = file }, is(new(*sandbox.UnavailableError))},
		"a parent below a file":   {sandbox.Spec{}, func(o *Options) { o.Parent = file + "/run" }, is(new(*sandbox.UnavailableError))},
	} {
		opts := options(t)
		if tt.change != nil {
			tt.change(&opts)
		}
		_, err := New(opts, &tt.spec)
		if err == nil || !tt.want(err) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(opts.Parent); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// The directory of another user's code is below the cache, and only reachable ones
// are used.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run code as another user")
	}
	const uid = 60598
	base, err := os.MkdirTemp("/tmp", "rundir-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	spec := &sandbox.Spec{Trees: []sandbox.Tree{tree(mountpoint.In, map[string]string{"d/in.txt": "in"})}, Secrets: []sandbox.Secret{sandbox.NewSecret("token", "x")}}
	b, err := New(Options{Cache: base, UID: uid}, spec)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(b.Root) != filepath.Join(base, "run") {
		t.Errorf("the directory is %s", b.Root)
	}
	for p, want := range map[string]uint32{"": 0, mountpoint.Work: uid, mountpoint.In + "/d": uid, mountpoint.In + "/d/in.txt": uid, mountpoint.Secrets: 0, mountpoint.Secrets + "/token": uid} {
		var st unix.Stat_t
		if err := unix.Lstat(b.Root+p, &st); err != nil || st.Uid != want {
			t.Errorf("%s belongs to user %d, %v", p, st.Uid, err)
		}
	}
	for _, p := range []string{b.Root, filepath.Dir(b.Root)} {
		if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != 0o711 {
			t.Errorf("%s: %v, %v", p, fi.Mode(), err)
		}
	}
	b.Close()
	closed := filepath.Join(base, "closed")
	if err := errors.Join(os.Mkdir(closed, 0o700), os.Mkdir(closed+"/in", 0o755)); err != nil {
		t.Fatal(err)
	}
	_, err = New(Options{Cache: base, Parent: closed + "/run", UID: uid}, &sandbox.Spec{})
	if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || !strings.Contains(e.Missing, "user 60598 can reach") {
		t.Errorf("a directory that cannot be reached: %v", err)
	}
	mounts := []sandbox.Mount{{Path: closed + "/in", Host: closed + "/in"}}
	_, err = New(Options{Cache: base, UID: uid}, &sandbox.Spec{Mounts: mounts})
	if e, ok := errors.AsType[*sandbox.UnsupportedError](err); !ok || !strings.Contains(e.What, "user 60598") {
		t.Errorf("a mount that cannot be reached: %v", err)
	}
	b, err = New(Options{Cache: t.TempDir(), Parent: base + "/other"}, &sandbox.Spec{Mounts: mounts})
	if err != nil {
		t.Fatalf("a mount of the same user: %v", err)
	}
	b.Close()
}

func TestCollect(t *testing.T) {
	b := newDir(t, &sandbox.Spec{})
	work := b.HostPath(mountpoint.Work)
	deep := work + strings.Repeat("/d", maxDepth)
	for _, d := range []string{"/in", "/a/in", strings.Repeat("/d", maxDepth+1)} {
		if err := os.MkdirAll(work+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for p, data := range map[string]string{work + "/x": "1", work + "/in/skipped": "2", work + "/a/in/y": "3", deep + "/z": "4", deep + "/d/too-deep": "5"} {
		if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(work+"/x", 0o755), os.Symlink("x", work+"/link"), unix.Mkfifo(work+"/pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := b.Collect(t.Context(), func(f sandbox.File, r io.Reader) error {
		data, err := io.ReadAll(r)
		if f.Exec != (f.Path == "x") || f.Size != 1 {
			t.Errorf("%+v", f)
		}
		got[f.Path] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got["x"] != "1" || got["a/in/y"] != "3" || got[deep[len(work)+1:]+"/z"] != "4" {
		t.Errorf("collected %v", got)
	}
	want := errors.New("enough")
	if err := b.Collect(t.Context(), func(sandbox.File, io.Reader) error { return want }); !errors.Is(err, want) {
		t.Errorf("visit failed: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Collect(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := os.RemoveAll(work); err != nil {
		t.Fatal(err)
	}
	if err := b.Collect(t.Context(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
}

// A file that changes while it is read has the size that was announced.
func TestExactReader(t *testing.T) {
	failed := errors.New("failed")
	for name, tt := range map[string]struct {
		r    io.Reader
		want string
		err  error
	}{
		"same":   {strings.NewReader("abc"), "abc", nil},
		"grown":  {strings.NewReader("abcdef"), "abc", nil},
		"shrunk": {strings.NewReader("a"), "a\x00\x00", nil},
		"broken": {io.MultiReader(strings.NewReader("a"), errReader{failed}), "a", failed},
	} {
		got, err := io.ReadAll(&exactReader{r: tt.r, remaining: 3})
		if !bytes.Equal(got, []byte(tt.want)) || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestLimits(t *testing.T) {
	b := newDir(t, &sandbox.Spec{})
	for i, p := range []string{mountpoint.Work + "/a", mountpoint.Work + "/b", mountpoint.Tmp + "/c"} {
		if err := os.WriteFile(b.HostPath(p), bytes.Repeat([]byte{1}, 4096*(i+1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	size, n, err := countFiles(b.HostPath(mountpoint.Work), 1<<30, 1000)
	if err != nil || n != 5 || size < 3*4096 { // with in and out
		t.Fatalf("counted %d bytes in %d files, %v", size, n, err)
	}
	tmp, _, _ := countFiles(b.HostPath(mountpoint.Tmp), 1<<30, 1000)
	enough := sandbox.Limits{Work: size, Tmp: tmp, Inodes: n}
	for name, tt := range map[string]struct {
		change func(*sandbox.Limits)
		want   string
	}{
		"exactly as much": {func(*sandbox.Limits) {}, ""},
		"less in work":    {func(l *sandbox.Limits) { l.Work-- }, "too much data in " + mountpoint.Work},
		"less in tmp":     {func(l *sandbox.Limits) { l.Tmp-- }, "too much data in " + mountpoint.Tmp},
		"fewer files":     {func(l *sandbox.Limits) { l.Inodes-- }, "too many files in " + mountpoint.Work},
	} {
		l := enough
		tt.change(&l)
		if why, again := b.CheckLimits(l); !strings.HasPrefix(why, tt.want) || (why == "") != (tt.want == "") || again != shortest {
			t.Errorf("%s: %q, again in %v", name, why, again)
		}
	}
	if _, again := b.CheckLimits(sandbox.Limits{Work: 1 << 40, Tmp: 1 << 40, Inodes: 1 << 30}); again != longest {
		t.Errorf("far from the limits: again in %v", again)
	}
	if _, again := b.CheckLimits(sandbox.Limits{Work: 1 << 40, Tmp: 1 << 40, Inodes: n + filesPerSecond/100}); again != 10*time.Millisecond {
		t.Errorf("near the limit of files: again in %v", again)
	}
}

// A watch reports each exceeded limit while the sandbox is busy, until it ends.
func TestWatch(t *testing.T) {
	b := newDir(t, &sandbox.Spec{})
	ended, checks, full := make(chan struct{}), make(chan bool), make(chan string)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.Watch(sandbox.Limits{Work: 1 << 30, Tmp: 1 << 30, Inodes: 1}, ended, func() bool { return <-checks }, func(why string) { full <- why })
	}()
	checks <- false
	for range 2 {
		checks <- true
		if why := <-full; !strings.Contains(why, "too many files") {
			t.Errorf("ended with %q", why)
		}
	}
	checks <- false
	close(ended)
	for {
		select {
		case checks <- false:
		case <-stopped:
			return
		}
	}
}
