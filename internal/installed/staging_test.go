package installed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/installed"
)

func TestSecondChangeWaitsForFirst(t *testing.T) {
	path := t.TempDir()
	first, err := installed.Open(path).Begin(t.Context())
	must(t, err)
	ended, end := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	end(enough)
	if _, err := installed.Open(path).Begin(ended); !errors.Is(err, enough) {
		t.Errorf("while another is open: %v, want the cause of the end of the context", err)
	}
	saw := make(chan error)
	go func() {
		saw <- change(t.Context(), installed.Open(path), func(_ context.Context, c *installed.Change) error {
			if _, ok := c.Lockfile().Skills["b"]; !ok {
				return errors.New("it began before the first had ended")
			}
			return nil
		})
	}()
	_, err = first.Put(t.Context(), "b", entry(), document("b", "1"))
	must(t, err)
	must(t, first.Commit(t.Context()))
	must(t, first.Close())
	must(t, <-saw)
	clean(t, installed.Open(path))
}

func TestConcurrentProcessesLoseNoChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skills")
	exe, err := os.Executable()
	must(t, err)
	var want []string
	var all sync.WaitGroup
	for i := range 4 {
		process, here := fmt.Sprintf("process-%d", i), fmt.Sprintf("here-%d", i)
		want = append(want, process+"@1", here+"@1")
		all.Go(func() {
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), helper+"="+path, helper+"_PUT="+process)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", process, err, out)
			}
		})
		all.Go(func() {
			for v := range 10 { // comes and goes with the directory of the others
				err := change(t.Context(), installed.Open(path), func(ctx context.Context, c *installed.Change) error {
					if v%2 == 0 {
						_, err := c.Put(ctx, here, entry(), document(here, "2"))
						return err
					}
					return c.Remove(ctx, here)
				})
				if err != nil {
					t.Errorf("%s: %v", here, err)
				}
			}
			if err := change(t.Context(), installed.Open(path), func(ctx context.Context, c *installed.Change) error {
				_, err := c.Put(ctx, here, entry(), document(here, "1"))
				return err
			}); err != nil {
				t.Errorf("%s: %v", here, err)
			}
		})
	}
	all.Wait()
	slices.Sort(want)
	if diff := cmp.Diff(want, versions(t, installed.Open(path))); diff != "" {
		t.Errorf("not every change counts (-want +got):\n%s", diff)
	}
	clean(t, installed.Open(path))
}

func TestCatalogIgnoresStagingDirectory(t *testing.T) {
	dir := installed.Open(t.TempDir())
	put(t, dir, "pdf@1")
	listed := func() []string {
		c, err := catalog.New([]catalog.Source{catalog.NewDir("dir", catalog.Project, dir.Path(), nil)}, nil)
		must(t, err)
		must(t, c.Reload(t.Context()))
		out := []string{}
		for e := range c.Snapshot().All() {
			out = append(out, e.Dir)
		}
		return out
	}
	c, err := dir.Begin(t.Context())
	must(t, err)
	defer c.Close()
	for _, name := range []string{"pdf", "new"} {
		_, err = c.Put(t.Context(), name, entry(), document(name, "2"))
		must(t, err)
	}
	if got := listed(); !slices.Equal(got, []string{"pdf"}) {
		t.Errorf("before the commit: %q", got)
	}
	must(t, c.Commit(t.Context()))
	if got := listed(); !slices.Equal(got, []string{"new", "pdf"}) { // the old ones are not removed yet
		t.Errorf("after the commit: %q", got)
	}
	if ignore, err := os.ReadFile(filepath.Join(dir.Path(), installed.Staging, ".gitignore")); err != nil || string(ignore) != "*\n" {
		t.Errorf("what keeps it out of a repository: %q, %v", ignore, err)
	}
}

// Symlinks that an untrusted repository has in place of our files are not followed.
func TestForeignStagingDirectory(t *testing.T) {
	journal := func(name string) string {
		return `{"version":1,"skills":[{"name":"` + name + `","was":true}]}`
	}
	for name, make := range map[string]func(t *testing.T, top, dir string){
		"link out": func(t *testing.T, top, dir string) {
			link(t, filepath.Join(top, "outside"), filepath.Join(dir, installed.Staging))
		},
		"link in": func(t *testing.T, top, dir string) { link(t, "pdf", filepath.Join(dir, installed.Staging)) },
		"file":    func(t *testing.T, top, dir string) { write(t, dir, installed.Staging, "") },
		"lock is a link": func(t *testing.T, top, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, installed.Staging), 0o755))
			link(t, "../pdf/SKILL.md", filepath.Join(dir, installed.Staging, "lock"))
		},
		"journal leads out": func(t *testing.T, top, dir string) {
			write(t, dir, installed.Staging+"/journal.json", journal("../outside"))
		},
		"journal of what is no directory": func(t *testing.T, top, dir string) {
			link(t, filepath.Join(top, "outside"), filepath.Join(dir, "mine"))
			write(t, dir, installed.Staging+"/journal.json", journal("mine"))
			must(t, os.Mkdir(filepath.Join(dir, installed.Staging, "old"), 0o755))
		},
		"no journal":       func(t *testing.T, top, dir string) { write(t, dir, installed.Staging+"/journal.json", "[") },
		"journal of later": func(t *testing.T, top, dir string) { write(t, dir, installed.Staging+"/journal.json", `{"version":2}`) },
		"lock is unreadable": func(t *testing.T, top, dir string) {
			write(t, dir, installed.Staging+"/journal.json", journal("pdf"))
			write(t, dir, installed.Staging+"/loadout.lock", "{}")
			must(t, os.Mkdir(filepath.Join(dir, installed.Staging, "old"), 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := installed.Open(filepath.Join(top, "skills"))
			put(t, dir, "pdf@1")
			write(t, top, "outside/new/pdf/SKILL.md", "not ours")
			make(t, top, dir.Path())
			start := tree(t, top)
			if c, err := dir.Begin(t.Context()); err == nil {
				c.Close()
				t.Error("a change began")
			} else if !strings.Contains(err.Error(), installed.Staging) {
				t.Errorf("the error does not name the directory: %v", err)
			}
			got := tree(t, top)
			delete(got, "skills/"+installed.Staging+"/lock")
			if diff := cmp.Diff(start, got, cmpIgnore("skills/"+installed.Staging+"/lock")); diff != "" {
				t.Errorf("something changed:\n%s", diff)
			}
		})
	}
	t.Run("leftover symlinks", func(t *testing.T) {
		top := t.TempDir()
		dir := installed.Open(filepath.Join(top, "skills"))
		put(t, dir, "pdf@1")
		write(t, top, "outside/pdf/SKILL.md", "not ours")
		must(t, os.Mkdir(filepath.Join(dir.Path(), installed.Staging), 0o755))
		link(t, filepath.Join(top, "outside"), filepath.Join(dir.Path(), installed.Staging, "new"))
		link(t, "../pdf", filepath.Join(dir.Path(), installed.Staging, "old"))
		put(t, dir, "pdf@2", "csv@1")
		clean(t, dir)
		if got := tree(t, filepath.Join(top, "outside")); got["pdf/SKILL.md"] != "not ours" {
			t.Errorf("outside is now %q", got)
		}
	})
}

// cmpIgnore leaves a key out of a comparison of maps.
func cmpIgnore(key string) cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool {
		i, ok := p.Last().(cmp.MapIndex)
		return ok && i.Key().String() == key
	}, cmp.Ignore())
}

func TestDirectoryMayBeASymlink(t *testing.T) {
	top := t.TempDir()
	must(t, os.Mkdir(filepath.Join(top, "real"), 0o755))
	link(t, "real", filepath.Join(top, "skills"))
	put(t, installed.Open(filepath.Join(top, "skills")), "pdf@1")
	clean(t, installed.Open(filepath.Join(top, "real")))
	link(t, "nowhere", filepath.Join(top, "dangling"))
	if c, err := installed.Open(filepath.Join(top, "dangling")).Begin(t.Context()); err == nil {
		c.Close()
		t.Error("a change began in a link to nowhere")
	}
}

// A name is never without its skill while it is replaced, where two directories can be
// exchanged.
func TestReadersSeeOldOrNewState(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("directories are exchanged on Linux")
	}
	dir := installed.Open(t.TempDir())
	put(t, dir, "pdf@1")
	old, fresh := string(document("pdf", "1")["SKILL.md"].Data), string(document("pdf", "2")["SKILL.md"].Data)
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			data, err := os.ReadFile(filepath.Join(dir.Path(), "pdf", "SKILL.md"))
			if s := string(data); err != nil || s != old && s != fresh {
				done <- fmt.Errorf("read %q, %v", s, err)
				<-stop
				return
			}
		}
	}()
	for i := range 40 {
		put(t, dir, fmt.Sprintf("pdf@%d", 1+i%2))
	}
	close(stop)
	must(t, <-done)
}
