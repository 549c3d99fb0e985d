package chat_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/png"
	"reflect"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

const place = "52.5200N 13.4050E"

// photo returns an image with a place in its metadata, and the image without them.
func photo(t testing.TB, width int) (tagged, plain []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))); err != nil {
		t.Fatal(err)
	}
	plain = b.Bytes()
	text := "\x00\x00\x00\x11tEXt" + place + "\x00\x00\x00\x00"
	return append(append(bytes.Clone(plain[:33]), text...), plain[33:]...), plain
}

// seen returns the parts of the user's messages in a request: the widths of images,
// and texts.
func seen(t testing.TB, r *llm.Request) (out []any) {
	t.Helper()
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Image:
				img, err := png.DecodeConfig(bytes.NewReader(p.Data))
				if err != nil || p.MIMEType != "image/png" || bytes.Contains(p.Data, []byte(place)) {
					t.Errorf("the model got the image %+v, %v", p, err)
				}
				out = append(out, img.Width)
			case llm.Text:
				if m.Role == llm.User {
					out = append(out, string(p))
				}
			}
		}
	}
	return out
}

// An image of a message goes to the model on every node, without its metadata, also
// after a branch, and after its file was replaced. It is stored once.
func TestImages(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		ctx := t.Context()
		var last *llm.Request
		k := setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
			last = r
			return says("Nice."), nil
		})}
		db := open()
		e := node(t, db, k)
		id := begin(t, e)
		send := func(text string, after *int64, images ...chat.ImageRef) {
			t.Helper()
			in, err := e.SendMessage(ctx, ada, id, chat.Message{Text: text, Images: images, After: after})
			if err != nil {
				t.Fatal(err)
			}
			if ended := end(t, e, id, in); ended.Reason != chat.Done {
				t.Fatalf("the turn ended as %+v", ended)
			}
		}
		wantSeen := func(want ...any) {
			t.Helper()
			if got := seen(t, last); !reflect.DeepEqual(got, want) {
				t.Errorf("the model got %q, want %q", got, want)
			}
		}
		tagged, plain := photo(t, 7)
		for name, data := range map[string][]byte{"a/photo.png": tagged, "text.png": []byte("text")} {
			if err := e.WriteFile(ctx, ada, id, name, data); err != nil {
				t.Fatal(err)
			}
		}
		send("What is this?", nil, chat.ImageRef{Path: "a/photo.png"})
		const files = "(Files of the images: a/photo.png)\n\n"
		wantSeen(7, files, "What is this?")

		h, err := e.History(ctx, ada, id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		images := h.Messages[0].Images
		if len(images) != 1 || images[0].Name != "a/photo.png" || images[0].MIMEType != "image/png" || images[0].Data != nil {
			t.Fatalf("the history has the images %+v", images)
		}
		full, err := e.ReadImage(ctx, ada, id, images[0].Ref)
		if err != nil || !bytes.Equal(full.Data, plain) {
			t.Errorf("ReadImage returned %+v, %v", full, err)
		}
		if _, err := e.ReadImage(ctx, bob, id, images[0].Ref); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("another user reads the image: %v", err)
		}
		for _, stream := range []string{id, id + "/in", id + "/out"} {
			rows, err := db.Events.Read(ctx, stream, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if bytes.Contains(r.Data, []byte(base64.StdEncoding.EncodeToString(plain[:30]))) {
					t.Errorf("%s contains the image: %s", stream, r.Data)
				}
			}
		}

		closeNode(t, e)
		e = node(t, open(), k) // another node
		send("And now?", nil)
		wantSeen(7, files, "What is this?", "And now?")
	})
}

// An image stays what it was when its file is replaced. Its message is sent again with
// it, and the export contains it. Once the file is deleted, the model is told so.
func TestImageVersions(t *testing.T) {
	ctx := t.Context()
	var last *llm.Request
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{tools: folderTools, model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		last = r
		return echo(ctx, r)
	})})
	id := begin(t, e)
	ask := func(m chat.Message) {
		t.Helper()
		in, err := e.SendMessage(ctx, ada, id, m)
		if err != nil {
			t.Fatal(err)
		}
		if ended := end(t, e, id, in); ended.Reason != chat.Done {
			t.Fatalf("the turn ended as %+v", ended)
		}
	}
	first, plain := photo(t, 1)
	if err := e.WriteFile(ctx, ada, id, "p.png", first); err != nil {
		t.Fatal(err)
	}
	ask(chat.Message{Images: []chat.ImageRef{{Path: "p.png"}}})
	second, _ := photo(t, 2)
	if err := e.WriteFile(ctx, ada, id, "p.png", second); err != nil {
		t.Fatal(err)
	}
	h, err := e.History(ctx, ada, id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	old := chat.ImageRef{Path: "p.png", SHA256: h.Messages[0].Images[0].Ref}
	ask(chat.Message{Text: "hello", Images: []chat.ImageRef{{Path: "p.png"}, old}, After: h.Messages[0].After})
	if got, want := seen(t, last), []any{2, 1, "(Files of the images: p.png, p.png)\n\n", "hello"}; !reflect.DeepEqual(got, want) {
		t.Errorf("on the new branch, the model got %q, want %q", got, want)
	}
	var out strings.Builder
	if err := e.Export(ctx, ada, id, chat.JSONL, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), base64.StdEncoding.EncodeToString(plain)); n != 1 {
		t.Errorf("the export contains the image %d times:\n%s", n, out.String())
	}
	if ref := fmt.Sprintf(`"ref":"%x"`, sha256.Sum256(plain)); strings.Count(out.String(), ref) != 1 {
		t.Errorf("the second message does not refer to %s:\n%s", ref, out.String())
	}
	out.Reset()
	if err := e.Export(ctx, ada, id, chat.Markdown, &out); err != nil || strings.Count(out.String(), "\nImage: p\\.png\n") != 2 {
		t.Errorf("the export is %q, %v", out.String(), err)
	}
	if err := e.DeleteFile(ctx, ada, id, "p.png"); err != nil {
		t.Fatal(err)
	}
	ask(chat.Message{Text: "bye"})
	if got := seen(t, last); len(got) != 5 || got[0] != "[Image p.png omitted: it was deleted.]\n" {
		t.Errorf("after the deletion, the model got %q", got)
	}
}

// A model that does not read images gets their names.
func TestImagesForTextModel(t *testing.T) {
	ctx := t.Context()
	var last *llm.Request
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{blind: true, model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		last = r
		return says("Fine."), nil
	})})
	id := begin(t, e)
	data, _ := photo(t, 1)
	if err := e.WriteFile(ctx, ada, id, "p.png", data); err != nil {
		t.Fatal(err)
	}
	in, err := e.SendMessage(ctx, ada, id, chat.Message{Text: "hello", Images: []chat.ImageRef{{Path: "p.png"}}})
	if err != nil {
		t.Fatal(err)
	}
	end(t, e, id, in)
	want := []any{"[Image p.png omitted: this model does not accept images. The file is in the working directory.]\n", "(Files of the images: p.png)\n\n", "hello"}
	if got := seen(t, last); !reflect.DeepEqual(got, want) {
		t.Errorf("the model got %q, want %q", got, want)
	}
}

// Replacing or deleting a file does not change the image of a message that waits.
func TestQueuedImageStays(t *testing.T) {
	ctx := t.Context()
	var last *llm.Request
	started, goOn := make(chan struct{}), make(chan struct{})
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		if last == nil {
			close(started)
			<-goOn
		}
		last = r
		return says("Fine."), nil
	})})
	id := begin(t, e)
	say(t, e, id, "wait")
	<-started
	write := func(width int) {
		t.Helper()
		data, _ := photo(t, width)
		if err := e.WriteFile(ctx, ada, id, "p.png", data); err != nil {
			t.Fatal(err)
		}
	}
	send := func() int64 {
		t.Helper()
		in, err := e.SendMessage(ctx, ada, id, chat.Message{Images: []chat.ImageRef{{Path: "p.png"}}})
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	write(1)
	send()
	write(2)
	send()
	write(3)
	in := send()
	close(goOn)
	end(t, e, id, in)
	if got, want := widths(t, last), []any{1, 2, 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("the model got %q, want %q", got, want)
	}
	if data, err := e.ReadFile(ctx, ada, id, "p.png"); err != nil {
		t.Error(err)
	} else if c, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width != 3 {
		t.Errorf("the file has the image %+v, %v", c, err)
	}
}

// A message that is sent again with its key is the same, although its file has changed.
// A message can be sent again although its image was deleted.
func TestImagesSentAgain(t *testing.T) {
	ctx := t.Context()
	var last *llm.Request
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{model: model(func(ctx context.Context, r *llm.Request) (*llm.Answer, error) {
		last = r
		return says("Fine."), nil
	})})
	id := begin(t, e)
	write := func(width int) {
		t.Helper()
		data, _ := photo(t, width)
		if err := e.WriteFile(ctx, ada, id, "p.png", data); err != nil {
			t.Fatal(err)
		}
	}
	send := func(m chat.Message) int64 {
		t.Helper()
		in, err := e.SendMessage(ctx, ada, id, m)
		if err != nil {
			t.Fatal(err)
		}
		end(t, e, id, in)
		return in
	}
	write(1)
	m := chat.Message{Text: "a", Key: "k", Images: []chat.ImageRef{{Path: "p.png"}}}
	first := send(m)
	write(2)
	if again := send(m); again != first {
		t.Errorf("the message was sent again as %d, first as %d", again, first)
	}
	h, err := e.History(ctx, ada, id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	old := h.Messages[0].Images[0]
	if err := e.DeleteFile(ctx, ada, id, "p.png"); err != nil {
		t.Fatal(err)
	}
	if again := send(m); again != first {
		t.Errorf("after the deletion, the message was sent again as %d, first as %d", again, first)
	}
	send(chat.Message{Text: "b", Images: []chat.ImageRef{{Path: old.Name, SHA256: old.Ref}}})
	gone := "[Image p.png omitted: it was deleted.]\n"
	if got, want := widths(t, last), []any{gone, gone}; !reflect.DeepEqual(got, want) {
		t.Errorf("the model got %q, want %q", got, want)
	}
}

// Only files that are images of the right size are accepted, whatever their names are.
func TestRefusedImages(t *testing.T) {
	ctx := t.Context()
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	id := begin(t, e)
	good, _ := photo(t, 1)
	wide, _ := photo(t, chat.MaxImagePixels+1)
	broken := bytes.Clone(good)
	broken[len(broken)-14]++ // the pixels
	padded := func(n int) []byte { return append(bytes.Clone(good), make([]byte, n-len(good))...) }
	for name, data := range map[string][]byte{
		"good.txt": good, "wide.png": wide, "text.png": []byte("text"), "cut.png": good[:60], "broken.png": broken, "page.gif": []byte("GIF89a<script>"), "big.png": padded(chat.MaxImage + 1),
		"1.png": padded(chat.MaxImageBytes / 3), "2.png": padded(chat.MaxImageBytes/3 - 1), "3.png": padded(chat.MaxImageBytes/3 + 5),
	} {
		if err := e.WriteFile(ctx, ada, id, name, data); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ names, want string }{
		{"good.txt", ""},
		{"1.png 2.png", ""},
		{"missing.png", "not a file of the conversation"},
		{"../x.png", "want a relative path"},
		{"text.png", "not a PNG, JPEG, GIF or WebP image"},
		{"cut.png", "not a PNG, JPEG, GIF or WebP image"},
		{"broken.png", "not a PNG, JPEG, GIF or WebP image, or damaged"},
		{"page.gif", "not a PNG, JPEG, GIF or WebP image"},
		{"wide.png", "8001 × 1 pixels, limit 8000 × 8000"},
		{"big.png", "too large"},
		{"1.png 2.png 3.png", "too large"},
		{strings.TrimSpace(strings.Repeat("good.txt ", chat.MaxImages+1)), "too many images"},
	} {
		var refs []chat.ImageRef
		for name := range strings.FieldsSeq(tt.names) {
			refs = append(refs, chat.ImageRef{Path: name})
		}
		_, err := e.SendMessage(ctx, ada, id, chat.Message{Text: "hello", Images: refs})
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, chat.ErrInvalid) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.names, err, tt.want)
		}
	}
	if _, err := e.SendMessage(ctx, bob, id, chat.Message{Images: []chat.ImageRef{{Path: "good.txt"}}}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another user: %v", err)
	}
}
