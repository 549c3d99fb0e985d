package loadout_test

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/packages/packagestest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/policy"
)

// registry is an npm and Python registry on loopback.
type registry struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string][]byte
}

func newRegistry(t *testing.T) *registry {
	r := &registry{pages: map[string][]byte{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		page, ok := r.pages[q.URL.Path]
		r.mu.Unlock()
		if !ok {
			http.NotFound(w, q)
			return
		}
		if bytes.HasPrefix(page, []byte("{")) {
			w.Header().Set("Content-Type", "application/json")
		} else if bytes.HasPrefix(page, []byte("<")) {
			w.Header().Set("Content-Type", "text/html")
		}
		w.Write(page)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *registry) put(path string, page []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages[path] = page
}

// npm publishes a package with one program.
func (r *registry) npm(t *testing.T, name, version, program string) {
	t.Helper()
	manifest := map[string]any{"name": name, "version": version, "bin": map[string]string{"serve": "bin/serve.js", "other": "bin/serve.js"}}
	text, _ := json.Marshal(manifest)
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	tw := tar.NewWriter(gz)
	for name, text := range map[string]string{"package/package.json": string(text), "package/bin/serve.js": program} {
		tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
		tw.Write([]byte(text))
	}
	tw.Close()
	gz.Close()
	file := fmt.Sprintf("/%s/-/x-%s.tgz", name, version)
	sum := sha512.Sum512(b.Bytes())
	manifest["dist"] = map[string]any{"tarball": r.URL + file, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
	doc, _ := json.Marshal(map[string]any{"name": name, "dist-tags": map[string]any{"latest": version}, "versions": map[string]any{version: manifest}})
	r.put(file, b.Bytes())
	r.put("/"+name, doc)
}

// pypi publishes a wheel with one program.
func (r *registry) pypi(t *testing.T, name, version, program string) {
	t.Helper()
	module := strings.ReplaceAll(name, "-", "_")
	r.wheel(name, module+"-"+version+"-py3-none-any.whl", packagestest.Wheel(module, version, map[string]string{
		module + "/__init__.py": program, module + "-" + version + ".dist-info/entry_points.txt": "[console_scripts]\nserve = " + module + ":main\n"}))
}

// wheel publishes a wheel as the only file of a package.
func (r *registry) wheel(name, file string, wheel []byte) {
	r.put("/files/"+file, wheel)
	r.put("/simple/"+name+"/", fmt.Appendf(nil, "<!DOCTYPE html><html><body><a href=%q>%s</a></body></html>", r.URL+"/files/"+file, file))
}

// withFile returns a wheel with a file replaced or added, but with the same RECORD.
func withFile(t *testing.T, wheel []byte, name, text string) []byte {
	t.Helper()
	in, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range in.File {
		if f.Name == name {
			continue
		}
		if err := out.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	w, err := out.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte(text))
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const jsServer = "#!/usr/bin/env node\nprocess.stdin.on('data', d => process.stdout.write('VERSION ' + process.argv.slice(2).join(' ') + ' ' + d))\n"

// fetching returns a shop whose skill starts a command, with its own registry.
func fetching(t *testing.T, command ...string) (*shop, *registry, string) {
	t.Helper()
	r := newRegistry(t)
	text, err := json.Marshal(map[string]any{"here": map[string]any{"command": command[0], "args": command[1:]}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(stagetest.OpenDir(t), "packages")
	s := newShop(t, files{"f/SKILL.md": "---\nname: f\ndescription: x\nmcpServers: " + string(text) + "\n---\n", "f/run.sh": "echo ran\n"}, func(s *shop, _ *loadout.Options) {
		s.scripts.Getenv = os.Getenv
		s.scripts.PrivateNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		s.scripts.Packages = &loadout.Packages{Dir: dir, NPMRegistry: r.URL + "/", PythonIndex: r.URL + "/simple"}
	})
	return s, r, dir
}

// removeInstalled removes all installed packages.
func removeInstalled(t *testing.T, dir string) {
	t.Helper()
	exec.Command("chmod", "-R", "u+w", dir).Run()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

func TestNPXRunsApprovedPackage(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	command := []string{"npx", "-y", "-p", "@scope/tool", "serve", "a", "b"}
	s, r, dir := fetching(t, command...)
	r.npm(t, "@scope/tool", "1.2.3", strings.Replace(jsServer, "VERSION", "one", 1))
	svc := execution.ServiceRequest{Skill: "f", Command: command}

	s.approve(t, "f") // before the package is installed
	if _, err := s.serve(t, svc); err == nil || !strings.Contains(err.Error(), "was not installed when the skill was approved") {
		t.Errorf("approved without the package: %v", err)
	}
	if err := s.InstallPackages(t.Context(), "f", nil); err != nil {
		t.Fatal(err)
	}
	w, err := s.ReadApprovalRequest(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	p := w.Services[0].Package
	if p == nil || p.Version != "1.2.3" || p.Registry != "npm" || !strings.HasPrefix(p.Integrity, "sha256:") {
		t.Fatalf("the request has %+v", p)
	}
	s.approve(t, "f")
	served, err := s.serve(t, svc)
	if err != nil {
		t.Fatal(err)
	}
	if got := say(t, served, bufio.NewReader(served), "hello"); got != "one a b hello" {
		t.Errorf("output %q", got)
	}
	if served.Package == nil || *served.Package != execution.Package(*p) {
		t.Errorf("it is %+v", served.Package)
	}
	served.Close()
	if ran, err := s.try(t, loadout.Run{Skill: "f", Script: "run.sh"}); err != nil || ran.Stdout != "ran\n" {
		t.Errorf("its scripts by the same approval: %+v, %v", ran, err)
	}

	// The same version from the registry is accepted again; another version is
	// not.
	removeInstalled(t, dir)
	if served, err = s.serve(t, svc); err != nil {
		t.Errorf("installed again: %v", err)
	} else {
		served.Close()
	}
	removeInstalled(t, dir)
	r.npm(t, "@scope/tool", "1.2.4", strings.Replace(jsServer, "VERSION", "two", 1))
	if served, err = s.serve(t, svc); err == nil || !strings.Contains(err.Error(), "approved @scope/tool@1.2.3, but installed 1.2.4") {
		t.Errorf("another version: %v", err)
		if err == nil {
			served.Close()
		}
	}
	if ran, err := s.try(t, loadout.Run{Skill: "f", Script: "run.sh"}); err != nil || ran.Stdout != "ran\n" {
		t.Errorf("its scripts need none of it: %+v, %v", ran, err)
	}
}

func TestUVXRunsApprovedPackage(t *testing.T) {
	if exec.Command("python3", "-m", "pip", "--version").Run() != nil {
		t.Skip("pip is not installed")
	}
	command := []string{"uvx", "--from", "some-tool==2.0", "serve", "a"}
	s, r, dir := fetching(t, command...)
	r.pypi(t, "some-tool", "2.0", "import sys\ndef main():\n    for line in sys.stdin:\n        print('py', *sys.argv[1:], line.strip(), flush=True)\n")
	if err := s.InstallPackages(t.Context(), "f", nil); err != nil {
		t.Fatal(err)
	}
	s.approve(t, "f")
	served, err := s.serve(t, execution.ServiceRequest{Skill: "f", Command: command})
	if err != nil {
		t.Fatal(err)
	}
	if got := say(t, served, bufio.NewReader(served), "hello"); got != "py a hello" {
		t.Errorf("output %q", got)
	}
	if p := served.Package; p == nil || p.Name != "some-tool" || p.Version != "2.0" || p.Registry != "pypi" {
		t.Errorf("it is %+v", p)
	}
	served.Close()

	// The same files are accepted again. Other files in the same version are not,
	// whatever the package claims in RECORD.
	r.mu.Lock()
	approved := r.pages["/files/some_tool-2.0-py3-none-any.whl"]
	r.mu.Unlock()
	for _, tt := range []struct{ file, text, refused string }{
		{"", "", ""},
		{"some_tool/__init__.py", "def main():\n    print('other code')\n", "the installed files of some-tool 2.0 differ from the approved ones"},
		{"some_tool/more.pyc", "compiled", "the installed files of some-tool 2.0 differ from the approved ones"},
		{"some_tool-2.0.dist-info/entry_points.txt", "[console_scripts]\nserve = some_tool:other\n", "the installed files of some-tool 2.0 differ from the approved ones"},
		{"some_tool-2.0.data/scripts/helper", "#!/bin/sh\necho other\n", "the installed files of some-tool 2.0 differ from the approved ones"},
		{"some_tool/__pycache__/__init__.cpython-311.pyc", "compiled", ""}, // is compiled again
	} {
		removeInstalled(t, dir)
		wheel := approved
		if tt.file != "" {
			wheel = withFile(t, approved, tt.file, tt.text)
		}
		r.wheel("some-tool", "some_tool-2.0-2-py3-none-any.whl", wheel)
		served, err := s.serve(t, execution.ServiceRequest{Skill: "f", Command: command})
		if err == nil {
			if got := say(t, served, bufio.NewReader(served), "hello"); got != "py a hello" {
				t.Errorf("%s: output %q", tt.file, got)
			}
			served.Close()
		}
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused+", or an earlier version of Loadout approved them; review skill f and approve it again") {
			t.Errorf("%s: %v, want %q", tt.file, err, tt.refused)
		}
	}
}

// Check which arguments of npx and uvx a skill may use.
func TestFetchedCommands(t *testing.T) {
	for _, tt := range []struct{ command, refused string }{
		{"npx x", ""}, {"npx -y x@1.0.0 --flag", ""}, {"npx --yes @a/b@latest", ""}, {"npx --package=@a/b@^1 serve", ""}, {"uvx x", ""}, {"uvx x@1.2 -v", ""},
		{"uvx --from x==1.2 y", ""}, {"uvx --python 3.12 x>=1,<2", ""}, {"uvx x[cli]==1.0", ""},
		{"npx", "missing package"}, {"npx -y", "missing package"}, {"npx -p", "-p needs a package"}, {"npx -p a -p b c", "multiple packages"}, {"npx ./x", "not a package name"},
		{"npx https://example.com/x.tgz", "not a package name"}, {"npx git+ssh://x", "not a package name"}, {"npx a@file:../b", "not a package name"}, {"npx --call x", "unsupported option"},
		{"uvx", "missing package"}, {"uvx --from", "has no value"}, {"uvx ./x", "not a package name"}, {"uvx --index-url https://example.com x", "unsupported option"},
		{"uvx x@https://example.com/x.whl", "not a package name"}, {"uvx --python=pypy x", "invalid Python version"}, {"uvx x\"]", "not a package name"},
	} {
		words := strings.Fields(tt.command)
		text, _ := json.Marshal(map[string]any{"here": map[string]any{"command": words[0], "args": words[1:]}})
		s := anyShop(t, files{"f/SKILL.md": "---\nname: f\ndescription: x\nmcpServers: " + string(text) + "\n---\n"}, nil)
		w, err := s.ReadApprovalRequest(t.Context(), "f")
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Services[0].RefusedReason; (got == "") != (tt.refused == "") || !strings.Contains(got, tt.refused) {
			t.Errorf("%s: refused %q, want %q", tt.command, got, tt.refused)
		}
	}
}

// This test installs a real server from the registry in LOADOUT_TEST_NPM.
// LOADOUT_SANDBOX_PRIVATE is the address of a private mirror.
func TestNPXFromTheRegistry(t *testing.T) {
	name := os.Getenv("LOADOUT_TEST_NPM")
	if name == "" {
		t.Skip("LOADOUT_TEST_NPM names no package")
	}
	s, _, _ := fetching(t, "npx", "-y", name)
	s.scripts.Packages.NPMRegistry = ""
	if private := os.Getenv("LOADOUT_SANDBOX_PRIVATE"); private != "" {
		s.scripts.PrivateNetworks = append(s.scripts.PrivateNetworks, netip.MustParsePrefix(private))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	served, err := s.Runner().Serve(ctx, &execution.ServiceRequest{Skill: "f", Command: []string{"npx", "-y", name}, Caller: execution.Caller{ByUser: true, Principal: policy.LocalUser()}})
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	t.Logf("%+v", served.Package)
	got := say(t, served, bufio.NewReader(served), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	t.Log(got)
}
