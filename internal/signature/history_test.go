//go:build unix

package signature_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

func seen(counter uint64, digest string) signature.Seen {
	return signature.Seen{Scope: "/p", Source: "src", Name: "pdf", Counter: counter, Digest: digest}
}

// The highest counter stays, whatever is installed later, and what the user accepted in
// its place is remembered.
func TestHistory(t *testing.T) {
	h := signature.History{Path: filepath.Join(t.TempDir(), "state", "seen.json")}
	if got, err := h.Find("/p", "src", "pdf"); err != nil || got != (signature.Seen{}) {
		t.Errorf("without a file: %+v, %v", got, err)
	}
	if err := h.Forget(t.Context(), "src"); err != nil {
		t.Errorf("without a file: %v", err)
	}
	for _, step := range []struct{ record, want signature.Seen }{
		{seen(5, "d5"), seen(5, "d5")},
		{seen(7, "d7"), seen(7, "d7")},
		{seen(7, ""), seen(7, "d7")},
		{seen(7, "other"), seen(7, "other")},
		{seen(6, "d6"), signature.Seen{Scope: "/p", Source: "src", Name: "pdf", Counter: 7, Digest: "other", Accepted: "d6"}},
		{signature.Seen{Scope: "/p", Source: "src", Name: "pdf", Counter: 5, Digest: "x", Accepted: "d5"}, signature.Seen{Scope: "/p", Source: "src", Name: "pdf", Counter: 7, Digest: "other", Accepted: "d5"}},
		{seen(signature.MaxCounter, "max"), seen(signature.MaxCounter, "max")},
	} {
		if err := h.Record(t.Context(), step.record); err != nil {
			t.Fatal(err)
		}
		if got, err := h.Find("/p", "src", "pdf"); err != nil || got != step.want {
			t.Errorf("after %+v: %+v, %v, want %+v", step.record, got, err, step.want)
		}
	}
	others := []signature.Seen{{Scope: "/q", Source: "src", Name: "pdf", Counter: 1}, {Scope: "/p", Source: "other", Name: "pdf", Counter: 2}, {Scope: "/p", Source: "src", Name: "csv", Counter: 3}}
	if err := h.Record(t.Context(), others...); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(h.Path)
	if err != nil || strings.Index(string(text), `"other"`) > strings.Index(string(text), `"csv"`) || strings.Index(string(text), `"/p"`) > strings.Index(string(text), `"/q"`) {
		t.Errorf("not in order: %s, %v", text, err)
	}
	if err := h.Forget(t.Context(), "src"); err != nil {
		t.Fatal(err)
	}
	for _, s := range append(others, seen(1, "")) {
		got, err := h.Find(s.Scope, s.Source, s.Name)
		if err != nil || (got.Counter > 0) != (s.Source == "other") {
			t.Errorf("after the source is forgotten: %+v, %v", got, err)
		}
	}
	for _, bad := range []signature.Seen{{}, {Source: "s", Name: "n", Counter: 1}, {Scope: "s", Name: "n", Counter: 1}, {Scope: "s", Source: "s", Counter: 1}, seen(0, ""), seen(signature.MaxCounter+1, "")} {
		if err := h.Record(t.Context(), bad); err == nil || !strings.HasPrefix(err.Error(), "record counters: invalid entry") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// A damaged or unreadable history is an error, because an older version would be
// accepted without its entry.
func TestUnreadableHistory(t *testing.T) {
	h := signature.History{Path: filepath.Join(t.TempDir(), "seen.json")}
	all := map[string]func() error{
		"find counter":    func() error { _, err := h.Find("/p", "src", "pdf"); return err },
		"record counters": func() error { return h.Record(t.Context(), seen(9, "d9")) },
		"forget counters": func() error { return h.Forget(t.Context(), "src") },
	}
	entry := `{"scope":"/p","source":"src","name":"pdf","counter":5}`
	for what, text := range map[string]string{
		"no JSON": "{", "a list": "[]", "version": `{"version":2,"skills":[]}`, "another type": `{"version":1,"skills":{}}`,
		"twice": `{"version":1,"skills":[` + entry + "," + entry + `]}`, "no counter": `{"version":1,"skills":[{"scope":"/p","source":"src","name":"pdf"}]}`,
	} {
		if err := os.WriteFile(h.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, f := range all {
			if err := f(); err == nil {
				t.Errorf("%s, %s: no error", what, name)
			}
		}
		if got, _ := os.ReadFile(h.Path); string(got) != text {
			t.Errorf("%s: the file was changed to %s", what, got)
		}
	}
	if err := os.WriteFile(h.Path, []byte(`{"version":1,"skills":[`+entry+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"find counter", "record counters", "forget counters"} {
		limittest.EachOpen(t, all[name], func(error) {})
	}
	if got, err := h.Find("/p", "src", "pdf"); err != nil || got.Counter > 0 {
		t.Errorf("at the end: %+v, %v", got, err)
	}
}

// unreadable is a file system whose files cannot be opened or read.
type unreadable struct {
	fs.FS
	open bool
}

func (u unreadable) Open(name string) (fs.File, error) {
	if !u.open {
		return nil, fs.ErrPermission
	}
	f, err := u.FS.Open(name)
	return failingFile{f}, err
}

type failingFile struct{ fs.File }

func (failingFile) Read([]byte) (int, error) { return iotest.ErrReader(fs.ErrClosed).Read(nil) }

// Only a missing file means that a skill is not signed.
func TestReadFile(t *testing.T) {
	private, public, err := signature.GenerateKey("ada")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: pdf\ndescription: Reads PDF files.\n---\n"), Mode: 0o644}}
	bundle := func() *skill.Bundle { return &skill.Bundle{FS: files, Folder: "pdf"} }
	m, _, err := skill.ReadManifest(files)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := signature.ReadFile(files); !errors.Is(err, signature.ErrUnsigned) {
		t.Errorf("without a signature: %v", err)
	}
	if _, _, err := signature.VerifyBundle(bundle(), public); !errors.Is(err, signature.ErrUnsigned) {
		t.Errorf("a bundle without a signature: %v", err)
	}
	sig, err := signature.Sign(m, "pdf", private, signature.Release{})
	if err != nil {
		t.Fatal(err)
	}
	files[signature.FileName] = &fstest.MapFile{Data: sig, Mode: 0o644}
	if got, s, err := signature.ReadFile(files); err != nil || !bytes.Equal(got, sig) || s == nil {
		t.Errorf("with a signature: %v", err)
	}
	for _, open := range []bool{false, true} {
		if _, s, err := signature.ReadFile(unreadable{files, open}); err == nil || s != nil || errors.Is(err, signature.ErrUnsigned) {
			t.Errorf("an unreadable signature: %v", err)
		}
	}
	if m, _, err = skill.ReadManifest(files); err != nil { // with the signature
		t.Fatal(err)
	}
	if digest, s, err := signature.VerifyBundle(bundle(), public); err != nil || s == nil || digest != m.Digest() {
		t.Errorf("a signed bundle: %q, %v", digest, err)
	}
	_, other, err := signature.GenerateKey("eve")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := signature.VerifyBundle(bundle(), other); err == nil {
		t.Error("verified with another key")
	}
	files["run.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\n"), Mode: 0o755}
	if _, _, err := signature.VerifyBundle(bundle(), public); err == nil {
		t.Error("verified with another file")
	}
	for name, text := range map[string]string{"no signature": "x", "too long": strings.Repeat("x", signature.MaxBytes+1)} {
		files[signature.FileName] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		if _, s, err := signature.ReadFile(files); err == nil || s != nil || errors.Is(err, signature.ErrUnsigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
