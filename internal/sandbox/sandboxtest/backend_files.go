//go:build linux

package sandboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// fileBehaviours returns the requirements for sandbox files and collected
// files.
func fileBehaviours() []behaviour {
	return []behaviour{
		{"the skill is present and read-only", func(k *check) error {
			doc := mountpoint.Skill + "/SKILL.md"
			return joinErrors(k.expectOutput(skillText, "read", doc), k.expectOutput("a,b\n1,2\n", "read", mountpoint.Skill+"/data/table.csv"),
				k.expectFailure("write", doc, "changed"), k.expectFailure("write", mountpoint.Skill+"/new", "new"), k.expectOutput(skillText, "read", doc))
		}},
		{"only files in the manifest are visible", func(k *check) error {
			m := k.spec.Trees[0].FS.(fstest.MapFS)
			m["extra.sh"] = &fstest.MapFile{Data: []byte("extra"), Mode: 0o755}
			return joinErrors(k.expectFailure("read", mountpoint.Skill+"/extra.sh"), k.expectOutput("SKILL.md\ndata\npayload\n", "list", mountpoint.Skill))
		}},
		{"a changed file is an error, and nothing runs", func(k *check) error {
			for _, change := range []func(fstest.MapFS){
				func(m fstest.MapFS) { m["data/table.csv"] = &fstest.MapFile{Data: []byte("a,b\n1,3\n")} },
				func(m fstest.MapFS) { m["data/table.csv"] = &fstest.MapFile{Data: []byte("a,b\n1,2\nmore")} },
				func(m fstest.MapFS) { m["data/table.csv"] = &fstest.MapFile{Data: []byte("a")} },
				func(m fstest.MapFS) { delete(m, "data/table.csv") },
			} {
				spec := *k.spec
				m := maps.Clone(spec.Trees[0].FS.(fstest.MapFS))
				change(m)
				spec.Trees = slices.Clone(spec.Trees)
				spec.Trees[0].FS = m
				res, err := execute.Run(k.ctx, k.b, &spec, payloadCmd("exit", k.mark, "0"), nil)
				changed, ok := errors.AsType[*sandbox.ChangedError](err)
				if !ok || res != nil || changed.Path != "data/table.csv" {
					return fmt.Errorf("got result %+v, error %v, want a ChangedError for data/table.csv", res, err)
				}
			}
			return nil
		}},
		{"a file that changes between two reads", func(k *check) error {
			k.spec.Trees[0].FS = &changingFS{FS: k.spec.Trees[0].FS}
			for range 3 {
				box, err := k.b.Start(k.ctx, k.spec)
				if err != nil {
					if _, ok := errors.AsType[*sandbox.ChangedError](err); !ok {
						return err
					}
					continue
				}
				k.box = box
				err = k.expectOutput("a,b\n1,2\n", "read", mountpoint.Skill+"/data/table.csv")
				box.Close()
				k.box = nil
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"writable trees", func(k *check) error {
			given := newTree(mountpoint.In, map[string][]byte{"a.txt": []byte("given"), "sub/b.txt": []byte("deep")})
			given.Files[0].SHA256 = "" // the tree need not be verified
			k.spec.Trees = append(k.spec.Trees, given)
			return joinErrors(k.expectOutput("given", "read", mountpoint.In+"/a.txt"), k.expectOutput("deep", "read", mountpoint.In+"/sub/b.txt"), k.expectOutput("written", "write", mountpoint.In+"/a.txt", "mine"))
		}},
		{"other trees", func(k *check) error {
			k.spec.Trees = append(k.spec.Trees, newTree(mountpoint.Needs+"/other-one", map[string][]byte{"SKILL.md": []byte("needed")}), newTree(mountpoint.Build, map[string][]byte{"lib.txt": []byte("built")}))
			var env []string
			if err := k.runJSON(payloadCmd("env", k.mark), &env); err != nil {
				return err
			}
			dir, _ := lookup(env, "LOADOUT_SKILL_OTHER_ONE")
			return joinErrors(k.expectOutput("needed", "read", dir+"/SKILL.md"), k.expectOutput("needed", "read", mountpoint.Needs+"/other-one/SKILL.md"), k.expectOutput("built", "read", mountpoint.Build+"/lib.txt"),
				k.expectFailure("write", mountpoint.Needs+"/other-one/SKILL.md", "x"), k.expectFailure("write", mountpoint.Build+"/lib.txt", "x"))
		}},
		{"a tree from a file system that only its owner can read", func(k *check) error {
			for name, f := range k.spec.Trees[0].FS.(fstest.MapFS) {
				if name != "payload" {
					f.Mode = 0o600
				}
			}
			return k.expectOutput(skillText, "read", mountpoint.Skill+"/SKILL.md")
		}},
		{"the user's directory, read-only", func(k *check) error { return k.checkWorkspace(false) }},
		{"the user's directory, writable", func(k *check) error { return k.checkWorkspace(true) }},
		{"commands see each other's files", func(k *check) error {
			return joinErrors(k.expectOutput("written", "write", mountpoint.Work+"/note", "from the first"), k.expectOutput("from the first", "read", mountpoint.Work+"/note"),
				k.expectOutput("written", "write", mountpoint.Out+"/note", "out"))
		}},
		{"sandboxes do not see each other's files", func(k *check) error {
			if err := k.expectOutput("written", "write", mountpoint.Work+"/note", "mine"); err != nil {
				return err
			}
			if err := k.box.Close(); err != nil {
				return err
			}
			k.box = nil
			return k.expectFailure("read", mountpoint.Work+"/note")
		}},
		{"collects regular files, in order", collectsFiles},
		{"collects repeatedly", func(k *check) error {
			if err := k.expectOutput("written", "write", mountpoint.Out+"/a", "a"); err != nil {
				return err
			}
			for i, start := 0, time.Now(); i < 8000 && time.Since(start) < 3*time.Second; i++ {
				n := 0
				err := k.box.Collect(k.ctx, func(sandbox.File, io.Reader) error { n++; return nil })
				if err != nil || n != 1 {
					return fmt.Errorf("collection %d: got %d files, error %v, want 1 file", i+1, n, err)
				}
			}
			return k.expectOutput("a", "read", mountpoint.Out+"/a")
		}},
		{"a failing visit stops the collection", func(k *check) error {
			if err := joinErrors(k.expectOutput("written", "write", mountpoint.Out+"/a", "a"), k.expectOutput("written", "write", mountpoint.Out+"/b", strings.Repeat("b", 100000))); err != nil {
				return err
			}
			stop := errors.New("visit failed")
			visits := 0
			err := k.box.Collect(k.ctx, func(sandbox.File, io.Reader) error { visits++; return stop })
			if !errors.Is(err, stop) || visits != 1 {
				return fmt.Errorf("got %d visits, error %v, want 1 visit, error %v", visits, err, stop)
			}
			return k.expectOutput("a", "read", mountpoint.Out+"/a")
		}},
	}
}

// checkWorkspace mounts a host directory and checks access to it. It does nothing if
// the backend cannot mount directories.
func (k *check) checkWorkspace(writable bool) error {
	dir, err := os.MkdirTemp(k.dir, "workspace-")
	if err != nil {
		return err
	}
	if err := joinErrors(os.WriteFile(dir+"/a.txt", []byte("a"), 0o666), os.Chmod(dir, 0o777), os.Chmod(dir+"/a.txt", 0o666)); err != nil {
		return err
	}
	k.spec.Mounts = []sandbox.Mount{{Host: dir, Path: mountpoint.Workspace, Writable: writable}}
	err = k.expectOutput("a", "read", mountpoint.Workspace+"/a.txt")
	if _, ok := errors.AsType[*sandbox.UnsupportedError](err); ok {
		return nil
	}
	if !writable {
		err = joinErrors(err, k.expectFailure("write", mountpoint.Workspace+"/a.txt", "b"), k.expectFailure("write", mountpoint.Workspace+"/b.txt", "b"))
	} else {
		err = joinErrors(err, k.expectOutput("written", "write", mountpoint.Workspace+"/a.txt", "b"))
	}
	got, readErr := os.ReadFile(dir + "/a.txt")
	if want := map[bool]string{false: "a", true: "b"}[writable]; string(got) != want {
		err = joinErrors(err, fmt.Errorf("content of a.txt on the host: got %q, want %q", got, want))
	}
	return joinErrors(err, readErr)
}

func collectsFiles(k *check) error {
	k.spec.Trees = append(k.spec.Trees, newTree(mountpoint.In, map[string][]byte{"given": []byte("given")}))
	if _, err := k.run(nil, "links"); err != nil {
		return err
	}
	want := map[string]string{"beside": "beside", "out/real": "real", "out/sub/deep": "deep"}
	var order []string
	err := k.box.Collect(k.ctx, func(f sandbox.File, r io.Reader) error {
		order = append(order, f.Path)
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if string(b) != want[f.Path] || f.Size != int64(len(b)) || f.SHA256 != "" && f.SHA256 != hashBytes(b) {
			return fmt.Errorf("content of collected file %+v: got %q, want %q", f, b, want[f.Path])
		}
		return nil
	})
	if err != nil {
		return err
	}
	if sorted := slices.Sorted(maps.Keys(want)); !slices.Equal(order, sorted) {
		return fmt.Errorf("collected files: got %q, want %q", order, sorted)
	}
	return nil
}

// changingFS is a file system that contains a file whose content changes
// whenever it is opened.
type changingFS struct {
	fs.FS
	opened int
}

func (f *changingFS) Open(name string) (fs.File, error) {
	if name != "data/table.csv" {
		return f.FS.Open(name)
	}
	f.opened++
	data := []byte("a,b\n1,2\n")
	if f.opened%2 == 0 {
		data = bytes.ToUpper([]byte("evil,ev\n"))
	}
	return fstest.MapFS{name: {Data: data}}.Open(name)
}
