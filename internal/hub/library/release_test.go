package library_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/remote/remotetest"
	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/skill"
)

// signed returns the files of a skill with a signature.
func signed(t *testing.T, name, body string, key signature.PrivateKey, counter uint64) map[string]string {
	t.Helper()
	doc := text(name, body)
	m, _, err := skill.ReadManifest(fstest.MapFS{"SKILL.md": {Data: []byte(doc)}})
	mustDo(t, err)
	sig, err := key.Sign(m, name, signature.Release{Counter: counter, Time: time.Now().Add(-time.Hour)})
	mustDo(t, err)
	return map[string]string{name + "/SKILL.md": doc, name + "/" + signature.FileName: string(sig)}
}

func publisher(t *testing.T) signature.PrivateKey {
	t.Helper()
	private, _, err := signature.GenerateKey("example.com")
	mustDo(t, err)
	return signature.PrivateKey{Private: private, Expires: time.Now().Add(1000 * time.Hour)}
}

// An import does not replace a signed skill by an older version of it, nor by
// one that its publisher did not sign, unless the request says so.
func TestImportRefusesDowngrade(t *testing.T) {
	w := sqlite(t, local(&library.Options{TempDir: t.TempDir()}))
	g := remotetest.NewGit(t)
	key, stranger := publisher(t), publisher(t)
	one, two := signed(t, "pdf", "one", key, 1), signed(t, "pdf", "two", key, 2)
	load := func(downgrade bool) map[string][]string {
		t.Helper()
		return became(must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{Overwrite: []string{"pdf"}, Downgrade: downgrade}))(t))
	}
	skipped := func(what, want string) {
		t.Helper()
		for how, got := range map[string]map[string][]string{"import": load(false), "update": became(must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t))} {
			if len(got["updated"]) > 0 || len(got["skipped"]) != 1 || !strings.Contains(got["skipped"][0], want) {
				t.Errorf("%s, %s: %v, want %q", what, how, got, want)
			}
		}
	}
	g.Commit(one)
	wantEqual(t, load(false)["created"], []string{"pdf@1"})
	g.Commit(two)
	wantEqual(t, load(false)["updated"], []string{"pdf@2"})

	g.Commit(one)
	skipped("an older version", "downgrade")
	g.Commit(signed(t, "pdf", "fork", key, 2))
	skipped("the same counter", "same counter 2")
	g.Commit(signed(t, "pdf", "evil", stranger, 9))
	skipped("another key", "key of skill")
	evil := signed(t, "pdf", "three", key, 3)
	evil["pdf/SKILL.md"] = text("pdf", "changed")
	g.Commit(evil)
	skipped("another file", "differs from the signed one")
	g.Push(remotetest.Change{Files: map[string]string{"pdf/SKILL.md": text("pdf", "unsigned")}, Remove: []string{"pdf/" + signature.FileName}})
	skipped("no signature", "no longer signed")

	g.Commit(one)
	wantEqual(t, load(true)["updated"], []string{"pdf@1"})
	g.Commit(signed(t, "pdf", "three", key, 3))
	wantEqual(t, load(false)["updated"], []string{"pdf@3"})

	private, _, err := signature.GenerateKey("example.com")
	mustDo(t, err)
	next, err := key.Replace(private, time.Time{}, time.Now().Add(-2*time.Hour))
	mustDo(t, err)
	g.Commit(signed(t, "pdf", "four", next, 4))
	wantEqual(t, load(false)["updated"], []string{"pdf@4"})

	// Another group has its own history.
	g.Commit(one)
	got := became(must(w.lib.Import(w.ctx, w.ada, library.Namespace("user:"+string(w.ada.User)), g.URL, library.ImportSelection{}))(t))
	wantEqual(t, got["created"], []string{"pdf@1"})
}

// The counters of another publisher do not raise the floor: whoever imports a version
// with a high one does not stop the updates. An update says why it skips a skill, and
// downgrade lets it continue.
func TestFloorIsThatOfThePublisher(t *testing.T) {
	w := sqlite(t, local(&library.Options{TempDir: t.TempDir()}))
	g := remotetest.NewGit(t)
	key, stranger := publisher(t), publisher(t)
	update := func(downgrade bool) *library.ImportResult {
		t.Helper()
		return must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{Downgrade: downgrade}))(t)
	}
	skipped := func(want library.DowngradeReason) {
		t.Helper()
		if got := update(false); len(got.Skipped) != 1 || got.Skipped[0].Code != want || got.Skipped[0].Number != 0 {
			t.Errorf("the update is %+v, want it skipped with the code %s", got, want)
		}
	}
	one := signed(t, "pdf", "one", key, 1)
	g.Commit(one)
	id := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{}))(t).Created[0].ID
	g.Commit(signed(t, "pdf", "foreign", stranger, 900))
	wantEqual(t, became(update(true))["updated"], []string{"pdf@2"})

	g.Commit(signed(t, "pdf", "two", key, 2))
	skipped(library.KeyChanged) // the newest version has another one
	wantEqual(t, became(update(true))["updated"], []string{"pdf@3"})
	g.Commit(signed(t, "pdf", "three", key, 3))
	wantEqual(t, became(update(false))["updated"], []string{"pdf@4"})

	g.Commit(one)
	skipped(library.Downgraded)
	wantEqual(t, became(update(true))["updated"], []string{"pdf@1"})
	got := must(w.lib.Publisher(w.ctx, w.bob, id, 0))(t)
	if got.Name != "example.com" || got.Counter != 1 || !got.KeyExpires.Equal(key.Expires.Truncate(time.Second)) || got.KeyExpired {
		t.Errorf("the publisher is %+v", got)
	}
	plain := w.upload(w.ada, w.team, "docx", "one")
	if got := must(w.lib.Publisher(w.ctx, w.bob, plain.ID, 0))(t); got != nil {
		t.Errorf("the publisher of an unsigned skill is %+v", got)
	}
}

// Only imports that everybody may get decide whose key signs a skill, and which
// counter is the highest: uploads and rejected imports change nothing.
func TestUploadsPinNoKey(t *testing.T) {
	w := sqlite(t, local(&library.Options{TempDir: t.TempDir()}))
	g := remotetest.NewGit(t)
	key, stranger := publisher(t), publisher(t)
	load := func(files map[string]string, downgrade bool) map[string][]string {
		t.Helper()
		g.Commit(files)
		return became(must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{Overwrite: []string{"pdf"}, Downgrade: downgrade}))(t))
	}
	wantEqual(t, load(signed(t, "pdf", "one", key, 1), false)["created"], []string{"pdf@1"})
	id := must(w.lib.FindID(w.ctx, w.ada, w.team, "pdf"))(t)
	for i, by := range []signature.PrivateKey{stranger, key} { // the second one is a replay of a counter
		files := fstest.MapFS{}
		for path, data := range signed(t, "pdf", "uploaded", by, uint64(90+i)) {
			files[strings.TrimPrefix(path, "pdf/")] = &fstest.MapFile{Data: []byte(data)}
		}
		must(w.lib.AddVersion(w.ctx, w.ada, id, library.Package{FileName: "pdf.zip", Data: bytes.NewReader(pack(t, "pdf", files))}))(t)
	}
	wantEqual(t, load(signed(t, "pdf", "two", key, 2), false)["updated"], []string{"pdf@4"})

	wantEqual(t, load(signed(t, "pdf", "forced", stranger, 99), true)["updated"], []string{"pdf@5"})
	forced := must(w.lib.Version(w.ctx, w.meg, id, 5))(t)
	mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, id, library.Decision{Digest: forced.Digest, Review: library.Rejected, Note: "no"}))
	wantEqual(t, load(signed(t, "pdf", "three", key, 3), false)["updated"], []string{"pdf@6"})

	wantEqual(t, load(signed(t, "pdf", "sold", stranger, 1), true)["updated"], []string{"pdf@7"})
	wantEqual(t, load(signed(t, "pdf", "newer", stranger, 2), false)["updated"], []string{"pdf@8"})
}

// A first import refuses what an update refuses: a key that has expired, and a date
// after the clock of the hub.
func TestFirstImportChecksKeyAndClock(t *testing.T) {
	w := sqlite(t, local(&library.Options{TempDir: t.TempDir()}))
	expired := publisher(t)
	expired.Expires = time.Now().Add(-time.Minute)
	ahead := func(doc string) map[string]string {
		m, _, err := skill.ReadManifest(fstest.MapFS{"SKILL.md": {Data: []byte(doc)}})
		mustDo(t, err)
		key := publisher(t)
		key.Expires = time.Time{}
		sig := must(key.Sign(m, "pdf", signature.Release{Counter: 1, Time: time.Now().Add(400 * 24 * time.Hour)}))(t)
		return map[string]string{"pdf/SKILL.md": doc, "pdf/" + signature.FileName: string(sig)}
	}(text("pdf", "one"))
	for _, tt := range []struct {
		what, want string
		code       library.DowngradeReason
		files      map[string]string
	}{
		{"an expired key", "expired on", library.KeyExpired, signed(t, "pdf", "one", expired, 1)},
		{"a date in the future", "in the future", "", ahead},
	} {
		g := remotetest.NewGit(t)
		g.Commit(tt.files)
		got := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{}))(t)
		if len(got.Created) > 0 || len(got.Skipped) != 1 || got.Skipped[0].Code != tt.code || !strings.Contains(got.Skipped[0].Reason, tt.want) {
			t.Errorf("%s: the import is %+v", tt.what, got)
		}
		got = must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{Downgrade: true}))(t)
		wantEqual(t, became(got)["created"], []string{"pdf@1"})
		must(w.lib.Delete(w.ctx, w.ada, got.Created[0].ID, false, true))(t)
	}
}
