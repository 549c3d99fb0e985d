package chat

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func TestSharedContent(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345" // which is redacted before the command is shortened
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	png, svg := llm.Image{MIMEType: "image/png", Data: []byte("png")}, llm.Image{MIMEType: "image/svg+xml", Data: []byte("<svg/>")}
	var path []step
	add := func(e session.Event) {
		e.Seq, e.Time = int64(len(path)+1), at
		path = append(path, step{Event: e})
	}
	add(session.Event{Start: &session.Start{Instructions: "Obey the operator."}})
	add(session.Event{Message: &session.Message{Role: llm.User, Text: "draw it"}})
	add(session.Event{Message: &session.Message{Role: llm.Assistant, Thinking: []llm.Thinking{{Text: "a thought"}}, Model: "script:1", Calls: []llm.Call{
		{ID: "1", Name: "call_tool", Arguments: `{"name":"charts__draw","arguments":{"path":"a/b.csv","token":"an argument"}}`},
		{ID: "2", Name: "run", Arguments: `{"command":"` + strings.Repeat("x ", 55) + token + strings.Repeat(" x", 100) + `"}`},
		{ID: "3", Name: "load_skill", Arguments: `{"name":"tides"}`},
		{ID: "4", Name: "broken", Arguments: `{`},
	}}})
	add(session.Event{Result: &session.CallResult{Call: "1", Text: "a result", Images: []llm.Image{png, svg}}})
	add(session.Event{Result: &session.CallResult{Call: "2", Text: "failed", Error: true}})
	add(session.Event{Notice: &session.Notice{Text: "a notice"}})
	add(session.Event{Message: &session.Message{Role: llm.Assistant, Text: "Here it is."}})
	for _, images := range []bool{false, true} {
		want := []SharedMessage{
			{Role: llm.User, Text: "draw it", Time: at},
			{Role: llm.Assistant, Time: at, Model: "script:1", Skills: []string{}, Calls: []SharedCall{
				{Name: "charts__draw", What: "•••"}, {Name: "run", What: strings.Repeat("x ", 55) + "••• x x x …", Error: true}, {Name: "broken"},
			}},
			{Role: llm.Assistant, Text: "Here it is.", Time: at, Skills: []string{}},
		}
		if images {
			want[1].Images = []SharedImage{{MIMEType: "image/png", Data: []byte("png")}}
		}
		b := branchOf(path, images)
		got := sharedContent("Tides", b.steps, images)
		if counts, err := got.redact(t.Context(), []string{"csv", "a/b.csv"}, b.unshared); err != nil || counts != (Redacted{Stored: 1, Recognized: 1}) {
			t.Errorf("counts %+v, error %v", counts, err) // "csv" is too short
		}
		if diff := cmp.Diff(want, got.Messages, cmpopts.IgnoreUnexported(SharedMessage{})); diff != "" {
			t.Errorf("images %t: got + and want -:\n%s", images, diff)
		}
	}
}

// branchOf returns the steps as they are read to share them.
func branchOf(path []step, images bool) *sharedBranch {
	b := &sharedBranch{}
	for _, s := range path {
		if s.Message != nil {
			m := *s.Message
			s.Message = &m
		}
		if s.Result != nil {
			r := *s.Result
			s.Result = &r
		}
		b.add(s, images)
	}
	b.limitUnshared()
	return b
}

func TestSharedContentIsLimited(t *testing.T) {
	c := &SharedContent{Messages: []SharedMessage{{Text: strings.Repeat("x", MaxShareBytes)}}}
	if _, _, err := c.encode(); !errors.Is(err, ErrInvalid) {
		t.Errorf("error is %v", err)
	}
	if _, err := decodeContent([]byte(`{"version":3,"messages":[]}`)); err == nil {
		t.Error("a later version is read")
	}
}

// What one text reveals to be a secret is replaced in all texts, also if that text is
// not shared.
func TestSecretsAreReplacedInAllTexts(t *testing.T) {
	event := func(e session.Event) step { return step{Event: e} }
	path := []step{
		event(session.Event{Message: &session.Message{Role: llm.User, Text: `password = "correct-horse-1"`}}),
		event(session.Event{Message: &session.Message{Role: llm.Assistant, Text: "I will use correct-horse-1.", Calls: []llm.Call{
			{ID: "1", Name: "run", Arguments: `{"command":"mysql -pcorrect-horse-1 tides","env":"DB_PASSWORD=in-an-argument-2"}`},
		}}}),
		event(session.Event{Result: &session.CallResult{Call: "1", Text: "api_key: in-a-result-3"}}),
		event(session.Event{Message: &session.Message{Role: llm.Assistant, Text: "There are in-an-argument-2 and in-a-result-3."}}),
	}
	b := branchOf(path, false)
	c := sharedContent("On correct-horse-1", b.steps, false)
	counts, err := c.redact(t.Context(), nil, b.unshared)
	if err != nil || counts.Recognized != 6 {
		t.Errorf("counts %+v, error %v", counts, err)
	}
	got := []string{c.Title, c.Messages[0].Text, c.Messages[1].Text, c.Messages[1].Calls[0].What, c.Messages[2].Text}
	want := []string{"On •••", `password = "•••"`, "I will use •••.", "mysql -p••• tides", "There are ••• and •••."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got + and want -:\n%s", diff)
	}
	many := &SharedContent{}
	for i := range maxRecognized + 1 {
		many.Title += fmt.Sprintf("password=secret-%d ", i)
	}
	if _, err := many.redact(t.Context(), nil, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("too many values: error %v", err)
	}
}

// A title, and an answer that was cut off, may have a part of a secret.
func TestPartsOfSecretsAreReplaced(t *testing.T) {
	hexKey := strings.Repeat("0123456789abcdef", 4)
	for _, test := range []struct{ secret, title, want string }{
		{hexKey, "Use " + hexKey[:56] + "…", "Use •••…"}, // as titleFrom cuts it
		{"har*bour`master", "Use harbourmaster now", "Use ••• now"},
		{"#harbour-master", "harbour-master is it", "••• is it"},
		{"first-line\nsecond-line", "Use first-line", "Use •••"},
		{"two  blanks", "Use two blanks", "Use •••"},
		{hexKey, "Use the tides", "Use the tides"},
	} {
		c := &SharedContent{Title: test.title}
		if _, err := c.redact(t.Context(), []string{test.secret}, nil); err != nil || c.Title != test.want {
			t.Errorf("%q: title %q, want %q, error %v", test.secret, c.Title, test.want, err)
		}
	}
	for stop, want := range map[string]string{"": "It is •••", "length": "It is •••", "end": "It is 01234567"} {
		path := []step{{Event: session.Event{Message: &session.Message{Role: llm.Assistant, Text: "It is 01234567", Stop: stop}}}}
		c := sharedContent("", path, false)
		if _, err := c.redact(t.Context(), []string{hexKey}, nil); err != nil || c.Messages[0].Text != want {
			t.Errorf("stop %q: %q, want %q, error %v", stop, c.Messages[0].Text, want, err)
		}
	}
}

// wrap encodes a value, after other text, in lines of 64 characters. One of the breaks is
// within the value.
func wrap(value, newline string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("t", 40) + value + strings.Repeat("u", 60)))
	return encoded[:64] + newline + encoded[64:128] + newline + encoded[128:]
}

// Encoded secrets are replaced, and credentials in addresses, wherever they are hidden.
func TestEncodedSecretsAreReplaced(t *testing.T) {
	const stored = "harbour/master+42"
	for text, want := range map[string]string{
		"Basic " + base64.StdEncoding.EncodeToString([]byte("ada:"+stored)): "•••",
		"https://h.test/?q=" + url.QueryEscape(stored):                      "https://h.test/?q=•••",
		hex.EncodeToString([]byte(stored)):                                  "•••",
		"x\n  " + wrap(stored, "\r\n  ") + "\nthe end\n":                    "•••",
		"one-line-of-words\nanother-line":                                   "one-line-of-words\nanother-line",
		`{"x":"harbour\/master+42"}`:                                        `{"x":"harbour\/master+42"}`, // not an escape of ours
		"[tides](https://ada:pw@h.test/x?sig=1&page=2)":                     "[tides](https://•••@h.test/x?sig=•••&page=2)",
		"![c](https://h.test/c.png?X-Amz-Signature=a1b2c3d4e5) a1b2c3d4e5":  "![c](https://h.test/c.png?X-Amz-Signature=•••) •••",
	} {
		c := &SharedContent{Messages: []SharedMessage{{Role: llm.Assistant, Text: text}}}
		if _, err := c.redact(t.Context(), []string{stored}, nil); err != nil || !strings.Contains(c.Messages[0].Text, want) {
			t.Errorf("%s became %s, want %s, error %v", text, c.Messages[0].Text, want, err)
		}
	}
}

// The preview lists the addresses that links do not show.
func TestAddresses(t *testing.T) {
	c := &SharedContent{Messages: []SharedMessage{
		{Role: llm.User, Text: "[mine](https://user.test/)"},
		{Role: llm.Assistant, Text: "[a](https://a.test/x_(y)) ![b](</b c.png> \"title\") [c][1] <https://d.test/> https://e.test/x, [top](#top) and [a](https://a.test/x_(y))\n\n[1]: https://c.test/\n<a href=\"/f\">"},
	}}
	got, more := c.addresses()
	if diff := cmp.Diff([]string{"https://a.test/x_(y)", "/b c.png", "https://c.test/", "/f", "https://d.test/", "https://e.test/x"}, got); diff != "" || more != 0 {
		t.Errorf("%d more, got + and want -:\n%s", more, diff)
	}
	unclosed := &SharedContent{Messages: []SharedMessage{{Role: llm.Assistant, Text: "[a](https://a.test/) " + strings.Repeat("](", 1<<20)}}}
	if got, more := unclosed.addresses(); len(got) != 1 || got[0] != "https://a.test/" || more == 0 { // reading each to the end would take hours
		t.Errorf("%q and %d more in links that do not end", got, more)
	}
	for i := range maxAddresses + 7 {
		c.Messages[1].Text += fmt.Sprintf(" [x](/%d)", i)
	}
	if got, more := c.addresses(); len(got) != maxAddresses || more != 13 {
		t.Errorf("%d addresses and %d more", len(got), more)
	}
}

// A preview whose caller is gone searches no further texts, and is not returned.
func TestRedactionStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &SharedContent{Messages: []SharedMessage{{Role: llm.Assistant, Text: "my-own-secret"}}}
	if n, err := c.redact(ctx, []string{"my-own-secret"}, nil); !errors.Is(err, context.Canceled) || n.Stored != 0 {
		t.Errorf("%d replaced, error %v", n.Stored, err)
	}
}
