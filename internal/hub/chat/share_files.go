package chat

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/redact"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
)

// Limits of the images of messages and the files in a share.
const (
	MaxSharedFiles     = 50       // maximum number of images and files
	MaxSharedFileBytes = 16 << 20 // maximum total size
)

// ShareOptions selects what a share contains apart from texts.
type ShareOptions struct {
	Images        bool     // images in results of calls
	MessageImages bool     // images of the user's messages
	Files         []string // paths of files on the current branch
}

// SharedFile is a file in a share.
type SharedFile struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Ref      string `json:"ref" doc:"Its content is at /api/v1/shared/LINK/files/REF"`
	Checked  bool   `json:"checked,omitempty" doc:"Whether it is text, in which secrets were replaced"`
	Redacted int    `json:"redacted,omitempty" doc:"Number of secrets that were replaced in it"`

	text   string // of a checked file
	data   []byte // of another one
	marked int    // how often the text had the marker of a secret at first
}

// sharedFiles are the contents of images and files in a share.
type sharedFiles struct {
	files []store.ShareFile
	size  int64
}

// add adds a content unless a limit would be exceeded.
func (f *sharedFiles) add(file store.ShareFile) bool {
	if slices.ContainsFunc(f.files, func(has store.ShareFile) bool { return has.Ref == file.Ref && has.Name == file.Name }) {
		return true
	}
	if len(f.files) == MaxSharedFiles || f.size+int64(len(file.Data)) > MaxSharedFileBytes {
		return false
	}
	f.files, f.size = append(f.files, file), f.size+int64(len(file.Data))
	return true
}

// addImages reads the images of the user's messages in the content, without their
// metadata. It removes deleted images from the content, and those beyond the limits. It
// returns how many images there are, and how many of them are beyond the limits.
func (e *Engine) addImages(ctx context.Context, id string, c *SharedContent, wanted bool, to *sharedFiles) (n, omitted int, err error) {
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role != llm.User {
			continue
		}
		all := m.Images
		m.Images = nil
		for _, image := range all {
			n++
			if !wanted {
				continue
			}
			full, err := e.readImage(ctx, id, image.Ref)
			if errors.Is(err, store.ErrNotFound) {
				n--
				continue
			}
			if err != nil {
				return 0, 0, err
			}
			if !to.add(store.ShareFile{Ref: image.Ref, Type: full.MIMEType, Data: full.Data}) {
				omitted++
				continue
			}
			m.Images = append(m.Images, image)
		}
	}
	return n, omitted, nil
}

// addFiles reads the chosen files. It fails with [ErrInvalid] if one of them is missing,
// or if they exceed the limits.
func (e *Engine) addFiles(ctx context.Context, id string, c *SharedContent, paths []string) error {
	if len(paths) > MaxSharedFiles {
		return fmt.Errorf("%w: too many files to share (%d, limit %d)", ErrInvalid, len(paths), MaxSharedFiles)
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	size := 0
	for _, path := range paths {
		data, err := e.db.Attachments.Read(ctx, id, path)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w: file %q is not a file of the conversation", ErrInvalid, path)
		}
		if err != nil {
			return err
		}
		if size += len(data); size > MaxSharedFileBytes {
			return fmt.Errorf("%w: files too large to share (%d bytes, limit %d); choose fewer", ErrInvalid, size, MaxSharedFileBytes)
		}
		f := SharedFile{Path: path, data: data}
		if utf8.Valid(data) && !bytes.ContainsRune(data, 0) {
			f.Checked, f.text, f.data = true, string(data), nil
			f.marked = strings.Count(f.text, redact.Marker)
		}
		c.Files = append(c.Files, f)
	}
	return nil
}

// finishFiles adds the contents of the files after secrets were replaced in them. It
// fails with [ErrInvalid] if they exceed the limits together with the images.
func (c *SharedContent) finishFiles(to *sharedFiles) error {
	for i := range c.Files {
		f := &c.Files[i]
		data := f.data
		if f.Checked {
			data = []byte(f.text)
			f.Redacted = max(0, strings.Count(f.text, redact.Marker)-f.marked)
		}
		sum := sha256.Sum256(data)
		f.Ref, f.Size = hex.EncodeToString(sum[:]), int64(len(data))
		if !to.add(store.ShareFile{Ref: f.Ref, Name: f.Path, Data: data}) {
			return fmt.Errorf("%w: images and files too large to share (limit %d, %d bytes); choose fewer, or share it without images", ErrInvalid, MaxSharedFiles, MaxSharedFileBytes)
		}
	}
	return nil
}

// OpenShareFile returns an image or a file of the share with the given link, by its
// ref. It fails like [Engine.OpenShare], and with [store.ErrNotFound] if the share has
// no such file.
func (e *Engine) OpenShareFile(ctx context.Context, p account.Principal, link, ref string) (store.ShareFile, error) {
	s, err := e.openShare(ctx, p, link)
	if err != nil {
		return store.ShareFile{}, err
	}
	return e.db.Shares.File(ctx, s.ID, ref)
}
