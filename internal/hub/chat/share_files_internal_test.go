package chat

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
)

// Images beyond the limits are left out and counted. Deleted ones do not count.
func TestSharedImagesAreLimited(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	id := storeSteps(t, db)
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	ref := func(i int) string { return fmt.Sprintf("%064x", i) }
	var all []SharedImage
	for i := range MaxSharedFiles + 3 {
		if err := db.Attachments.Put(t.Context(), store.Attachment{Session: id, Path: fmt.Sprintf("%d.png", i), SHA256: ref(i)}, encoded.Bytes()); err != nil {
			t.Fatal(err)
		}
		all = append(all, SharedImage{MIMEType: "image/png", Ref: ref(i)}, SharedImage{MIMEType: "image/png", Ref: ref(i)}) // the same twice is stored once
	}
	all = append(all, SharedImage{MIMEType: "image/png", Ref: ref(99999)})
	for _, wanted := range []bool{true, false} {
		c := &SharedContent{Messages: []SharedMessage{{Role: llm.User, Images: all}, {Role: llm.Assistant, Images: []SharedImage{{Data: []byte("of a result")}}}}}
		files := &sharedFiles{}
		n, omitted, err := (&Engine{db: db}).addImages(t.Context(), id, c, wanted, files)
		if err != nil {
			t.Fatal(err)
		}
		got := []int{n, omitted, len(c.Messages[0].Images), len(files.files), len(c.Messages[1].Images)}
		want := []int{2 * (MaxSharedFiles + 3), 6, 2 * MaxSharedFiles, MaxSharedFiles, 1}
		if !wanted {
			want = []int{2*(MaxSharedFiles+3) + 1, 0, 0, 0, 1}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("wanted %t: images, omitted, shown, stored, of results: %v, want %v", wanted, got, want)
		}
	}
}
