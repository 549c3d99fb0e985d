package packages_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/packages"
)

const hello = `{"name":"hello","version":"1.0.0","main":"index.js","bin":{"hello":"index.js"}}`

func shouter(run string) fstest.MapFS {
	return fstest.MapFS{"scripts/run.mjs": {Data: []byte(run)}, "package.json": {Data: []byte(`{"scripts":{"install":"touch installed"},"dependencies":{"hello":"^1.0.0"}}`)}}
}

func npmScene(t *testing.T, f *fake) *scene {
	t.Helper()
	s := newScene(t, func(o *packages.Options) { o.NPMRegistry = f.URL + "/" })
	needNPM(t)
	return s
}

func TestNodePackagesAreImportable(t *testing.T) {
	f := newFake(t)
	f.module("hello", "1.0.0", hello, member{name: "package/index.js", text: "exports.text = 'hello'\n"})
	s := npmScene(t, f)
	skill := shouter("import { createRequire } from 'node:module'\nimport h from 'hello'\nconsole.log(h.text, createRequire(import.meta.url)('hello').text)\n")
	skill[".npmrc"] = &fstest.MapFile{Data: []byte("registry=http://" + closedPort(t) + "/\n")}
	plan := resolve(t, skill, "scripts/run.mjs")
	p := s.ensure(t, skill, plan)
	if got := s.run(t, skill, plan, p); got != "hello hello\n" {
		t.Errorf("the script printed %q", got)
	}
	if len(p.Mounts) != 1 || p.Mounts[0].Path != packages.ModulesDir || p.Mounts[0].Writable {
		t.Errorf("mounts: %+v", p.Mounts)
	}
	before := f.requests()
	if q := s.ensure(t, skill, plan); q.Digest != p.Digest || f.requests() != before {
		t.Errorf("again: %s, %d requests", q.Digest, f.requests()-before)
	}
}

func TestLockfileIsObeyed(t *testing.T) {
	f := newFake(t)
	f.module("hello", "1.0.0", hello, member{name: "package/index.js", text: "module.exports = 'old'\n"})
	s := npmScene(t, f)
	skill := shouter("import h from 'hello'\nconsole.log(h)\n")
	// The addresses in a lock file name the public registry.
	skill["package-lock.json"] = &fstest.MapFile{Data: []byte(`{"name":"x","lockfileVersion":3,"requires":true,"packages":{
		"":{"name":"x","dependencies":{"hello":"^1.0.0"}},
		"node_modules/hello":{"version":"1.0.0","resolved":"https://registry.npmjs.org/hello/-/hello-1.0.0.tgz"}}}`)}
	plan := resolve(t, skill, "scripts/run.mjs")
	if !plan.Needs.Locked {
		t.Fatal("not locked")
	}
	if got := s.run(t, skill, plan, s.ensure(t, skill, plan)); got != "old\n" {
		t.Errorf("the script printed %q", got)
	}
	if f.count("/hello") != 0 {
		t.Error("the registry was asked for versions")
	}
	skill["package-lock.json"].Data = []byte(strings.Replace(string(skill["package-lock.json"].Data), `.tgz"`, `.tgz","integrity":"sha512-`+strings.Repeat("A", 86)+`=="`, 1))
	plan = resolve(t, skill, "scripts/run.mjs")
	_, err := s.Ensure(t.Context(), plan.Needs, skill, plan, nil)
	failed(t, err)
}

func TestLifecycleScriptsDoNotRun(t *testing.T) {
	f := newFake(t)
	f.module("hello", "1.0.0", `{"name":"hello","version":"1.0.0","scripts":{"postinstall":"echo ran > ran.txt"}}`, member{name: "package/index.js", text: ""})
	s := npmScene(t, f)
	skill := shouter("")
	plan := resolve(t, skill, "scripts/run.mjs")
	p := s.ensure(t, skill, plan)
	if _, err := os.Stat(filepath.Join(p.Mounts[0].Host, "hello", "ran.txt")); err == nil {
		t.Error("postinstall ran")
	}
	s.opts.AllowSource = true
	s.Builder = mustNew(t, s.opts)
	p = s.ensure(t, skill, plan)
	if _, err := os.Stat(filepath.Join(p.Mounts[0].Host, "hello", "ran.txt")); err != nil {
		t.Error("postinstall did not run where that is allowed")
	}
}

func TestNPMArchiveDoesNotEscape(t *testing.T) {
	f := newFake(t)
	outside := filepath.Join(t.TempDir(), "outside")
	f.module("hello", "1.0.0", hello, member{name: "package/../../../../../../../.." + outside, text: "x"},
		member{name: "package/link", text: "/etc/passwd", link: true}, member{name: "package/index.js", text: "module.exports = 'x'\n"})
	s := npmScene(t, f)
	skill := shouter("")
	plan := resolve(t, skill, "scripts/run.mjs")
	p, err := s.Ensure(t.Context(), plan.Needs, skill, plan, nil)
	if err != nil {
		failed(t, err)
	} else if _, err := os.Lstat(filepath.Join(p.Mounts[0].Host, "hello", "link")); err == nil {
		t.Error("a link was stored")
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("a file was written outside")
	}
}

func TestTarballFromOtherHostIsFetchedFromRegistry(t *testing.T) {
	other, f := newFake(t), newFake(t)
	path := other.module("hello", "1.0.0", hello)
	f.page["/hello"] = func(string) []byte { return other.page["/hello"](other.URL) }
	s := npmScene(t, f)
	skill := shouter("")
	plan := resolve(t, skill, "scripts/run.mjs")
	_, err := s.Ensure(t.Context(), plan.Needs, skill, plan, nil)
	if e := failed(t, err); !strings.Contains(e.Output, "404") {
		t.Errorf("npm said %q", e.Output)
	}
	if f.count(path) == 0 || other.requests() != 0 {
		t.Errorf("the registry was asked %d times, the other host %d times", f.count(path), other.requests())
	}
}

func TestMissingNPMErrorSaysHowToInstallIt(t *testing.T) {
	f := newFake(t)
	s := npmScene(t, f)
	skill := shouter("")
	plan := resolve(t, skill, "scripts/run.mjs")
	s.opts.Host.Path, s.opts.Host.System, s.opts.Host.Home = "", []string{t.TempDir()}, ""
	_, err := mustNew(t, s.opts).Ensure(t.Context(), plan.Needs, skill, plan, nil)
	if e, ok := errors.AsType[*packages.MissingToolError](err); !ok || e.Tool != "npm" || !slices.Equal(e.Needs, []string{"hello"}) || e.Hint == "" {
		t.Errorf("got %v, want a MissingToolError", err)
	}
}

func TestOfflineErrorNamesNodePackages(t *testing.T) {
	s := newScene(t, func(o *packages.Options) { o.NPMRegistry = "http://" + closedPort(t) })
	needNPM(t)
	skill := shouter("")
	plan := resolve(t, skill, "scripts/run.mjs")
	_, err := s.Ensure(t.Context(), plan.Needs, skill, plan, nil)
	if e, ok := errors.AsType[*packages.OfflineError](err); !ok || !slices.Equal(e.Needs, []string{"hello"}) {
		t.Errorf("got %v, want an OfflineError", err)
	}
}
