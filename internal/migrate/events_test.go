package migrate_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// pictureOf returns a PNG image of the given width, padded to a number of bytes.
func pictureOf(t *testing.T, width, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), make([]byte, max(0, size-b.Len()))...)
}

// exportOf returns an export with one event per line. The first one describes the
// conversation.
func exportOf(t *testing.T, about string, events ...session.Event) string {
	t.Helper()
	var b strings.Builder
	for i, e := range events {
		e.Seq = int64(i + 1)
		e.Time = time.Unix(int64(1e9+i), 0).UTC()
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && about != "" {
			text = append(bytes.TrimSuffix(text, []byte("}")), `, "conversation": `+about+"}"...)
		}
		b.WriteString(string(text) + "\n")
	}
	return b.String()
}

func asked(text string, images ...llm.Image) session.Event {
	return session.Event{Message: &session.Message{Role: llm.User, Text: text, Images: images}}
}

func answered(text string) session.Event {
	return session.Event{Message: &session.Message{Role: llm.Assistant, Text: text}}
}

// The images of messages are kept, also of a message that has no text. An image that an
// earlier message contains is found by its hash.
func TestImagesOfEvents(t *testing.T) {
	small, other := pictureOf(t, 1, 0), pictureOf(t, 2, 0)
	p := readSystem(t, migrate.Loadout, map[string]string{"a.jsonl": exportOf(t, "",
		asked("", llm.Image{MIMEType: "text/html", Name: "a/p.png", Data: small}), answered("A dot."),
		asked("And these?", llm.Image{Ref: fmt.Sprintf("%x", sha256.Sum256(small))}, llm.Image{Data: other}), answered("Dots."),
	)})
	if len(p.Conversations) != 1 || len(p.Conversations[0].Messages) != 4 || len(p.Conversations[0].Lost) > 0 {
		t.Fatalf("conversations %+v, lost %+v", p.Conversations, p.Lost)
	}
	c := p.Conversations[0]
	if i := c.Messages[0].Images; len(i) != 1 || i[0].MIMEType != "image/png" || !bytes.Equal(i[0].Data, small) {
		t.Errorf("images %+v", i)
	}
	if i := c.Messages[2].Images; len(i) != 2 || !bytes.Equal(i[0].Data, small) || !bytes.Equal(i[1].Data, other) {
		t.Errorf("images %+v", i)
	}
	if c.Title != "p.png" {
		t.Errorf("title %q", c.Title)
	}
	// A terminal gets the texts, and the report says so.
	change, err := p.Compare(t.Context(), target(t.TempDir()))
	if err != nil || change.Items[0].Details[0] != "without 3 images" || !strings.HasPrefix(change.Items[0].Details[1], "3 messages") {
		t.Errorf("items %+v, %v", change.Items, err)
	}
}

// Exports may be large. Over the limits, images are left out, not conversations.
func TestLimitsOfEvents(t *testing.T) {
	photo := pictureOf(t, 1, 3<<20)
	var events []session.Event
	for range 5 { // 20 MiB
		events = append(events, asked("Again", llm.Image{Data: photo}), answered("A dot."))
	}
	events = append(events, asked("Large", llm.Image{Data: pictureOf(t, 2, 4<<20)}), asked("Wide", llm.Image{Data: pictureOf(t, 9000, 0)}), asked("Text", llm.Image{Data: []byte("<script>")}))
	events = append(events, asked("Left out by the export", llm.Image{Ref: strings.Repeat("ab", 32)}), asked("Deleted before it", llm.Image{MIMEType: "image/png"}))
	events = append(events, session.Event{Result: &session.CallResult{Text: strings.Repeat("x", 25<<20)}}, answered("End."))
	p := readSystem(t, migrate.Loadout, map[string]string{"a.jsonl": exportOf(t, "", events...)})
	if len(p.Conversations) != 1 || len(p.Conversations[0].Messages) != 16 || len(p.Lost) > 0 {
		t.Fatalf("conversations %d, lost %+v", len(p.Conversations), p.Lost)
	}
	c := p.Conversations[0]
	if want := []string{"4 images over the limits", "1 event over the limit"}; !slices.Equal(c.Lost, want) {
		t.Errorf("lost %q, want %q", c.Lost, want)
	}
	for _, m := range c.Messages {
		for _, i := range m.Images {
			if kept := len(i.Data) > 0; kept != (m.Text == "Again") || !kept && i.Ref == "" {
				t.Errorf("%s: the image has %d bytes, ref %q", m.Text, len(i.Data), i.Ref)
			}
		}
	}
	// If all branches are too long, the current one is kept.
	long := strings.Repeat("x", 256<<10)
	events = []session.Event{asked("Start"), answered("Go.")}
	for range 32 {
		events = append(events, asked(long))
	}
	events = append(events, session.Event{Branched: &session.Branch{After: 2}}, asked("Short"), answered("Yes."))
	p = readSystem(t, migrate.Loadout, map[string]string{"a.jsonl": exportOf(t, "", events...)})
	if c := p.Conversations[0]; len(c.Messages) != 4 || c.Messages[3].Text != "Yes." || !slices.Equal(c.Lost, []string{"32 messages on other branches"}) {
		t.Errorf("%d messages, lost %q", len(c.Messages), c.Lost)
	}
}

// The texts of conversations count as read bytes, however small their archive is.
func TestTextsOfEventsAreLimited(t *testing.T) {
	export := exportOf(t, "", asked(strings.Repeat("x", 600)), answered("Yes."))
	p, err := migrate.ReadUpTo(t.Context(), migrate.Loadout, fstest.MapFS{"a.jsonl": {Data: []byte(export)}, "b.jsonl": {Data: []byte(export)}}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Conversations) != 1 || len(p.Lost) != 1 || !strings.Contains(p.Lost[0].Details[0], "more than 1000 bytes of messages") {
		t.Errorf("%d conversations, lost %+v", len(p.Conversations), p.Lost)
	}
}

// An export has the title, and says who gave it. Without one, the title is the first
// line of the first message, cut by characters. The ID depends on neither, and not on
// the form in which earlier versions exported a text.
func TestTitleOfEvents(t *testing.T) {
	long := strings.Repeat("潮", 61)
	ids := map[string]bool{}
	for about, want := range map[string][2]string{
		`{"title": "Tides\u202e </skill>", "title_source": "model"}`: {"Tides ‹/skill>", "model"},
		`{"title": "` + long + `", "title_source": "user"}`:          {long, "user"},
		``: {strings.Repeat("潮", 59) + "…", "message"},
	} {
		p := readSystem(t, migrate.Loadout, map[string]string{"a.jsonl": exportOf(t, about, asked(long+"\nmore"))})
		c := p.Conversations[0]
		if c.Title != want[0] || c.TitleSource != want[1] {
			t.Errorf("%s: title %q by %q, want %q", about, c.Title, c.TitleSource, want)
		}
		ids[c.ID] = true
	}
	sum := sha256.Sum256([]byte(`[{"role":"user","text":"` + long + `\nmore","loaded_skills":null}]`))
	if want := fmt.Sprintf("loadout-%x", sum[:6]); len(ids) != 1 || !ids[want] {
		t.Errorf("IDs %v, want %s", ids, want)
	}
}
