//go:build linux

package compat

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/internal/testprogram"
	"github.com/loadout-dev/loadout/sandbox"
)

//go:embed testdata/programs
var programs embed.FS

// everyday lists the programs: command, file, expected output, and required programs or
// absolute paths.
var everyday = []struct {
	by, file, want string
	needs          []string
}{
	{by: "python3", file: "asyncio_tasks.py", want: "285 HELLO 42"},
	{by: "python3", file: "pool.py", want: "fork 328350\nspawn 328350"},
	{by: "python3", file: "manager.py", want: "str 10"},
	{by: "python3", file: "threads.py", want: "435 190"},
	{by: "python3", file: "processes.py", want: "1048576"},
	{by: "python3", file: "database.py", want: "2"},
	{by: "python3", file: "tls.py", want: "CERT_REQUIRED True True", needs: []string{"/etc/ssl/certs/ca-certificates.crt"}},
	{by: "python3", file: "http_server.py", want: "6"},
	{by: "python3", file: "environment.py", want: "/work/env True"},
	{by: "python3", file: "children.py", want: "SOME WORDS 100 7 timeout"},
	{by: "python3", file: "files.py", want: "hello True\n-rwx------ 2 2 3"},
	{by: "python3", file: "copies.py", want: "-rwxr-xr-x drwxr-xr-x -rw-r--r-- drwxr-xr-x"},
	{by: "python3", file: "zips.py", want: "None 50\n50 100000"},
	{by: "python3", file: "memory.py", want: "51200"},
	{by: "node", file: "children.js", want: "WORD piped 3"},
	{by: "node", file: "workers.js", want: "4000"},
	{by: "node", file: "fork.js", want: "42"},
	{by: "node", file: "server.js", want: "/PATH"},
	{by: "node", file: "files.mjs", want: "51 true"},
	{by: "node", file: "crypto.mjs", want: "ba7816bf true 1"},
	{by: "bash", file: "substitution.sh", want: "2\n1+2+3+4\nthrough"},
	{by: "bash", file: "heredocs.sh", want: "hello world 42\n$name 2 WORLD"},
	{by: "bash", file: "jobs.sh", want: "ended by 143\nended by 143\ntrapped\nlater\n0"},
	{by: "bash", file: "pipeline.sh", want: "7 1000\na.txt b.txt", needs: []string{"awk", "sed", "sort", "find", "xargs"}},
	{by: "bash", file: "repository.sh", want: "3\n 1 file changed, 1 insertion(+)\nfile\n0", needs: []string{"git"}},
	{by: "bash", file: "archive.sh", want: "640\nsub/file\ntext", needs: []string{"tar", "gzip"}},
	{by: "bash", file: "compile.sh", want: "42", needs: []string{"gcc", "/usr/include/stdio.h"}},
	{by: "perl", file: "text.pl", want: "and=2,cat=1,end=1,hat=1,the=3 8"},
	{by: "bash", file: "certificates.sh", want: "cert.pem: OK\nba7816bf\n16", needs: []string{"openssl"}},
	{by: "bash", file: "big_sort.sh", want: "1\n1200000", needs: []string{"sort", "awk"}},
	{by: "/work/in/program", want: "20 child"}, // goprogram
}

func TestEveryday(t *testing.T) {
	buildProgram(t)
	if sandboxtest.AsUser(t) {
		return
	}
	testEveryday(t)
}

func TestEverydayAsRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root")
	}
	buildProgram(t)
	testEveryday(t)
}

func testEveryday(t *testing.T) {
	b := backend(t)
	files, err := fs.Sub(programs, "testdata/programs")
	if err != nil {
		t.Fatal(err)
	}
	skill := treeOf(t, "/skill", files)
	given := treeOf(t, mountpoint.In, os.DirFS(filepath.Dir(os.Getenv(programVariable))))
	tried := map[string]bool{}
	for _, p := range everyday {
		tried[p.file] = true
		args := []string{p.by}
		if p.file != "" {
			args = append(args, mountpoint.Skill+"/"+p.file)
		}
		t.Run(strings.ReplaceAll(strings.TrimPrefix(strings.Join(args, "_"), mountpoint.In+"/"), mountpoint.Skill+"/", ""), func(t *testing.T) {
			for _, name := range append(p.needs, p.by) {
				needs(t, name)
			}
			spec := &sandbox.Spec{Trees: []sandbox.Tree{skill, given}}
			if p.by == "node" {
				spec.Limits.Processes = 2 * prepare.DefaultLimits().Processes // as scripts in it have
			}
			res, err := execute.Run(t.Context(), b, spec, &sandbox.Cmd{Args: args}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(string(res.Stdout), "\n"); res.Reason != sandbox.OK || got != p.want || len(res.Stderr) > 0 {
				t.Errorf("%s (%d) %s: %q, want %q; %s", res.Reason, res.ExitCode, res.Detail, got, p.want, res.Stderr)
			}
		})
	}
	for _, f := range skill.Files {
		if !tried[f.Path] {
			t.Errorf("%s is not in the table", f.Path)
		}
	}
}

// needs skips a test if this machine lacks a program or path.
func needs(t *testing.T, name string) {
	t.Helper()
	if strings.HasPrefix(name, mountpoint.Work) {
		return
	}
	dirs := []string{"/usr/local/bin", "/usr/bin", "/bin"} // the sandbox's PATH
	if filepath.IsAbs(name) {
		dirs = []string{"/"}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return
		}
	}
	t.Skipf("no %s in %s", name, strings.Join(dirs, ", "))
}

// treeOf returns all files of fsys with their current hashes.
func treeOf(t *testing.T, at string, fsys fs.FS) sandbox.Tree {
	t.Helper()
	tree := sandbox.Tree{Path: at, FS: fsys}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(fsys, p)
		sum := sha256.Sum256(b)
		tree.Files = append(tree.Files, sandbox.File{Path: p, Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:]), Exec: true})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// programVariable names the Go program for tests that run again as a user without access
// to a compiler's caches.
const programVariable = "LOADOUT_TEST_PROGRAM"

// buildProgram builds goprogram without cgo, as a static executable.
func buildProgram(t *testing.T) {
	t.Helper()
	if os.Getenv(programVariable) != "" {
		return
	}
	to := filepath.Join(stagetest.OpenDir(t), "program")
	if err := (testprogram.Program{Package: "test/compat/goprogram"}).Install(to); err != nil {
		t.Fatal(err)
	}
	t.Setenv(programVariable, to)
}
