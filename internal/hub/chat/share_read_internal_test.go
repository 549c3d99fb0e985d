package chat

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// storeSteps appends steps to the transcript of a new conversation. A nil step is
// damaged.
func storeSteps(t *testing.T, db *store.DB, steps ...*session.Event) string {
	t.Helper()
	s, err := db.Sessions.Create(t.Context(), store.Session{Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range steps {
		data := []byte(`{"seq":-1}`)
		kind := "message"
		if e != nil {
			e.Seq = int64(i + 1)
			e.SetType()
			kind = e.Type
			if data, err = json.Marshal(step{Event: *e, Turn: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Events.Append(t.Context(), s.ID, int64(i), store.Event{Kind: kind, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	return s.ID
}

// A conversation that is too large is refused before all of it is read, and other
// branches are not read.
func TestReadingToShareIsBounded(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := &Engine{db: db}
	message := func(size int) *session.Event {
		return &session.Event{Message: &session.Message{Role: llm.Assistant, Text: strings.Repeat("x", size)}}
	}
	image := &session.Event{Result: &session.CallResult{Images: []llm.Image{{MIMEType: "image/png", Data: make([]byte, MaxShareBytes)}}}}
	read := func(id string, images bool) (int, error) {
		seen := 0
		_, err := e.readSharedBranch(t.Context(), id, 1, images, func(*step) { seen++ })
		return seen, err
	}
	var many []*session.Event
	for range 5 {
		many = append(many, message(MaxShareBytes/4))
	}
	for range 2 * sharePage {
		many = append(many, nil) // reading it would fail
	}
	if seen, err := read(storeSteps(t, db, many...), false); !errors.Is(err, ErrInvalid) || seen != 5 {
		t.Errorf("%d steps are read, error %v", seen, err)
	}
	id := storeSteps(t, db, message(1), image)
	if _, err := read(id, false); err != nil {
		t.Error(err)
	}
	if _, err := read(id, true); !errors.Is(err, ErrInvalid) {
		t.Errorf("with images: error %v", err)
	}
	branched := []*session.Event{message(1)}
	for range 2 * sharePage {
		branched = append(branched, nil)
	}
	branched = append(branched, &session.Event{Branched: &session.Branch{After: 1}}, message(2))
	if seen, err := read(storeSteps(t, db, branched...), false); err != nil || seen != 3 {
		t.Errorf("%d steps are read, error %v", seen, err)
	}
}

// What is not shared is searched for secrets up to a limit, the newest first.
func TestUnsharedTextIsLimited(t *testing.T) {
	b := &sharedBranch{}
	for range 2000 {
		b.add(step{Event: session.Event{Result: &session.CallResult{Text: strings.Repeat("x", 16<<10)}}}, false)
	}
	b.add(step{Event: session.Event{Result: &session.CallResult{Text: "newest"}}}, false)
	b.limitUnshared()
	size := 0
	for _, text := range b.unshared {
		size += len(text)
	}
	if size > maxUnsharedText || size < maxUnsharedText-16<<10 || b.unshared[len(b.unshared)-1] != "newest" {
		t.Errorf("%d bytes in %d texts", size, len(b.unshared))
	}
}

// Skills that were loaded on any branch are found by their store IDs, each once.
func TestLoadedSkills(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := &Engine{db: db}
	s, err := db.Sessions.Create(t.Context(), store.Session{Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3 * sharePage) {
		kind, data := "skill_loaded", `{"skill_id":"tides"}`
		switch {
		case i == 2*sharePage:
			data = `{"skill_id":"ships"}`
		case i == 1:
			data = `{}` // bundled
		case i%2 == 0:
			kind, data = "message", `{"skill_id":"none"}`
		}
		if _, err := db.Events.Append(t.Context(), s.ID, i, store.Event{Kind: kind, Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := e.loadedSkills(t.Context(), s.ID); err != nil || !slices.Equal(got, []string{"tides", "ships"}) {
		t.Errorf("%q, error %v", got, err)
	}
}
