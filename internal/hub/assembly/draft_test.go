package assembly_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

// draftOf are files as a draft has them.
func draftOf(t testing.TB, files fstest.MapFS) library.Draft {
	t.Helper()
	var d library.Draft
	must(t, fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			d.Files = append(d.Files, library.DraftFile{Path: path, Data: files[path].Data})
		}
		return err
	}))
	return d
}

// try begins a conversation with a draft.
func (w *fixture) try(p account.Principal, agent string, files fstest.MapFS) string {
	w.t.Helper()
	packed, err := w.lib.PackDraft(w.t.Context(), p, draftOf(w.t, files))
	must(w.t, err)
	c, err := w.chat.CreateWithDraft(w.t.Context(), p, agent, "", chat.Draft{Name: packed.Name, Digest: packed.Digest, Package: packed.Data})
	must(w.t, err)
	if c.Draft != packed.Name {
		w.t.Errorf("the conversation says that it has the draft %q", c.Draft)
	}
	return c.ID
}

// A draft is there in its conversation alone, in place of the skill of its name, on every
// node, and as long as the conversation.
func TestDraftIsUsableInItsConversation(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		w.upload(w.ada, own(w.ada), "tides", tree("tides", "", "Add one hour.", "notes.txt", "as it was"))
		w.upload(w.ada, own(w.ada), "ships", tree("ships", "", "Ships are long."))
		id := w.try(w.ada, "", tree("tides", "description: Tells when the water is high.", "Add two hours.", "notes.txt", "as it will be"))
		plain := w.begin(w.ada, "")
		if got := w.ask(w.ada, id, loadTides, "Add two hours."); strings.Contains(got, "Add one hour.") {
			t.Errorf("it loads %q", got)
		}
		w.ask(w.ada, id, `call read_skill_file {"skill":"tides","path":"notes.txt"}`, "as it will be")
		w.ask(w.ada, id, `call load_skill {"name":"ships"}`, "Ships are long.")
		w.ask(w.ada, plain, loadTides, "Add one hour.")
		w.ask(w.ada, id, "hello")
		if told := fmt.Sprint(w.model.last()); !strings.Contains(told, "- tides: Tells when the water is high.") || strings.Contains(told, "- tides: Does what") {
			t.Errorf("the model got %s", told)
		}
		if _, err := w.lib.DraftSource(t.Context(), w.eve, id); !errors.Is(err, library.ErrNotFound) {
			t.Errorf("another user has it: %v", err)
		}
		if _, err := w.lib.DraftSource(t.Context(), w.root, id); !errors.Is(err, library.ErrNotFound) {
			t.Errorf("an admin has it: %v", err)
		}

		w.anotherNode()
		w.ask(w.ada, id, loadTides, "already")
		w.ask(w.ada, id, `call read_skill_file {"skill":"tides","path":"notes.txt"}`, "as it will be")
		must(t, w.chat.Delete(t.Context(), w.ada, id))
		if _, err := db.Drafts.Get(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("it is still there: %v", err)
		}
	})
}

// anotherNode stops this node and starts another one.
func (w *fixture) anotherNode() {
	w.t.Helper()
	at, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	must(w.t, w.chat.Close(at))
	kits := assembly.New(assembly.Options{DB: w.db, Library: w.lib, Agents: w.kinds, Dir: w.t.TempDir(), Version: "test",
		Model: func(*agents.ModelChoice, string) (llm.Model, error) { return w.model, nil }})
	other := chat.New(w.db, chat.Options{Setup: kits.ChatSetup, Dir: w.t.TempDir(), Poll: 10 * time.Millisecond,
		Principal: func(_ context.Context, u account.UserID) (account.Principal, error) { return w.people[u], nil }})
	w.t.Cleanup(func() {
		must(w.t, other.Close(context.Background()))
		must(w.t, kits.Close())
	})
	w.chat = other
}

// An agent that names its skills has the draft too, and so has one that needs it.
func TestDraftIsUsableWithAgent(t *testing.T) {
	w := sqlite(t)
	w.upload(w.ada, own(w.ada), "ships", tree("ships", "description: Knows ships.\ndependencies: [tides]", "Ships are long."))
	w.upload(w.ada, own(w.ada), "tides", tree("tides", "", "Add one hour."))
	w.apply(w.ada, "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: helper}\nspec: {systemPrompt: Help., skills: [ships]}\n")
	id := w.try(w.ada, "Ghost/default/helper", tree("waves", "", "Waves are high."))
	w.ask(w.ada, id, `call load_skill {"name":"waves"}`, "Waves are high.")
	id = w.try(w.ada, "", tree("tides", "", "Add two hours."))
	w.ask(w.ada, id, `call load_skill {"name":"ships"}`, "Ships are long.", "Add two hours.")
}

func TestDraftCodeRunsOnceApproved(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	files := tree("tides", "", "Run high.sh.", "high.sh", "echo high water at 12:10\n")
	id := w.try(w.ada, "", files)
	w.ask(w.ada, id, runTides, "its code is an unsaved draft", "save the skill and ask for a review")
	s := w.upload(w.ada, own(w.ada), "tides", files)
	w.ask(w.ada, id, runTides, "its code is not reviewed yet")
	w.review(s, library.Approved)
	w.ask(w.ada, id, runTides, "high water at 12:10")
	w.review(s, library.Rejected)
	w.ask(w.ada, id, runTides, "its code was rejected in review")
}

// Among many skills it is found by the search that all conversations share.
func TestDraftIsFoundAmongManySkills(t *testing.T) {
	w := sqlite(t)
	for i := range 205 {
		w.upload(w.root, store.Public, fmt.Sprintf("form-%d", i), tree(fmt.Sprintf("form-%d", i), "description: Fills in a form.", "Fill it in."))
	}
	id := w.try(w.ada, "", tree("tides", "description: Tells when the water is high in a harbour.", "Add two hours."))
	const search = `call search_skills {"query":"high water in the harbour"}`
	w.ask(w.ada, id, search, "tides")
	if got := w.ask(w.ada, w.begin(w.ada, ""), search); strings.Contains(got, "tides") {
		t.Errorf("another conversation finds %q", got)
	}
}

// The uploader of a version tries it before its review, in one conversation. Others
// keep the approved version.
func TestPendingVersionIsTriedInAConversation(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	s := w.upload(w.ada, own(w.ada), "tides", tree("tides", "", "Add one hour."))
	v, err := w.lib.AddVersion(t.Context(), w.ada, s.ID, w.pack("tides", tree("tides", "", "Add two hours.", "high.sh", "echo high water at 12:10\n")))
	must(t, err)
	packed, err := w.lib.PackVersion(t.Context(), w.ada, s.ID, v.Number)
	must(t, err)
	if packed.Name != "tides" || packed.Digest != v.Digest {
		t.Errorf("the package is of %s %s, want tides %s", packed.Name, packed.Digest, v.Digest)
	}
	c, err := w.chat.CreateWithDraft(t.Context(), w.ada, "", "", chat.Draft{Name: packed.Name, Digest: packed.Digest, Package: packed.Data})
	must(t, err)
	w.ask(w.ada, c.ID, loadTides, "Add two hours.")
	w.ask(w.ada, c.ID, runTides, "its code is not reviewed yet")
	w.ask(w.ada, w.begin(w.ada, ""), loadTides, "Add one hour.")
	must(t, w.lib.ReviewVersion(t.Context(), w.root, s.ID, library.Decision{Digest: v.Digest, Review: library.Approved}))
	w.ask(w.ada, c.ID, runTides, "high water at 12:10")
}
