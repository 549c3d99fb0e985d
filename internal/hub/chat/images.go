package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/picture"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Limits for the images of a message. Vendors refuse more.
const (
	MaxImages      = 8
	MaxImage       = 5 << 20  // maximum size of an image, in bytes
	MaxImageBytes  = 10 << 20 // maximum total size, in bytes
	MaxImagePixels = 8000     // maximum width and height, in pixels
)

// Limits for the images of a request to a model. They are at least twice as large as
// those of a message, so that all images of the last message are sent.
const (
	maxSent      = 20
	maxSentBytes = 20 << 20
)

// ImageRef selects a file of a conversation as an image of a message.
type ImageRef struct {
	Path string
	// SHA256 is the hash of an earlier version of the file, in hexadecimal; ""
	// selects the current version.
	SHA256 string
}

// The hub stores an image of a message once, as a file of the conversation. The inbox,
// the transcript and its snapshots contain its name and its hash ([llm.Image.Ref]).
// If all versions of the file are deleted, the model receives a text that says so.

// readImages returns the images of a message without their content. It fails with
// [ErrInvalid] if a file is no image that models accept.
func (e *Engine) readImages(ctx context.Context, p account.Principal, id string, refs []ImageRef) ([]llm.Image, error) {
	if _, err := e.authorize(ctx, p, account.SessionWrite, id); err != nil {
		return nil, err
	}
	if len(refs) > MaxImages {
		return nil, fmt.Errorf("message: %w: too many images (%d, limit %d)", ErrInvalid, len(refs), MaxImages)
	}
	versions, err := e.imageVersions(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]llm.Image, len(refs))
	total := int64(0)
	for i, ref := range refs {
		if err := checkPath(ref.Path); err != nil {
			return nil, err
		}
		at := slices.IndexFunc(versions, func(a store.Attachment) bool {
			return a.Path == ref.Path && (ref.SHA256 == "" || a.SHA256 == ref.SHA256)
		})
		if at < 0 {
			return nil, fmt.Errorf("image %q: %w: not a file of the conversation; upload it first", ref.Path, ErrInvalid)
		}
		file := versions[at]
		if total += file.Size; file.Size > MaxImage || total > MaxImageBytes {
			return nil, fmt.Errorf("image %q: %w: too large (%d bytes, %d with the images before it; limit %d bytes, %d for all)", ref.Path, ErrInvalid, file.Size, total, MaxImage, MaxImageBytes)
		}
		data, err := e.db.Attachments.ReadContent(ctx, id, file.SHA256)
		if err != nil {
			return nil, err
		}
		info, err := picture.Inspect(data)
		if err == nil {
			_, err = picture.WithoutMetadata(data)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("image %q: %w: %w", ref.Path, ErrInvalid, err)
		case max(info.Width, info.Height) > MaxImagePixels:
			return nil, fmt.Errorf("image %q: %w: %d × %d pixels, limit %d × %d", ref.Path, ErrInvalid, info.Width, info.Height, MaxImagePixels, MaxImagePixels)
		}
		out[i] = llm.Image{MIMEType: info.MIMEType, Name: ref.Path, Ref: file.SHA256}
	}
	return out, nil
}

// imageVersions returns the files of a conversation and then their versions, without
// their content.
func (e *Engine) imageVersions(ctx context.Context, id string) ([]store.Attachment, error) {
	current, err := e.db.Attachments.List(ctx, id)
	if err != nil {
		return nil, err
	}
	versions, err := e.db.Attachments.ListVersions(ctx, id)
	if err != nil {
		return nil, err
	}
	versions = slices.DeleteFunc(versions, func(a store.Attachment) bool { return a.SHA256 == "" || a.SHA256 == store.DroppedVersion })
	return append(current, versions...), nil
}

// ReadImage returns an image of a message, without its metadata, by its
// [llm.Image.Ref]. It fails with [store.ErrNotFound] if the conversation has no such
// image.
func (e *Engine) ReadImage(ctx context.Context, p account.Principal, id, ref string) (llm.Image, error) {
	if _, err := e.authorize(ctx, p, account.SessionRead, id); err != nil {
		return llm.Image{}, err
	}
	return e.readImage(ctx, id, ref)
}

func (e *Engine) readImage(ctx context.Context, id, ref string) (llm.Image, error) {
	data, err := e.db.Attachments.ReadContent(ctx, id, ref)
	if err != nil {
		return llm.Image{}, err
	}
	info, err := picture.Inspect(data)
	if err == nil {
		data, err = picture.WithoutMetadata(data)
	}
	if err != nil { // a file that is no image
		return llm.Image{}, fmt.Errorf("image %.64q: %w", ref, store.ErrNotFound)
	}
	return llm.Image{MIMEType: info.MIMEType, Data: data}, nil
}

// embedImages adds the contents of the images in a user's message.
func (e *Engine) embedImages(ctx context.Context, id string, event *session.Event) error {
	if event.Message == nil || len(event.Message.Images) == 0 {
		return nil
	}
	message := *event.Message
	message.Images = slices.Clone(message.Images)
	for i := range message.Images {
		image := &message.Images[i]
		full, err := e.readImage(ctx, id, image.Ref)
		if errors.Is(err, store.ErrNotFound) {
			continue // deleted
		}
		if err != nil {
			return err
		}
		image.Data, image.Ref = full.Data, ""
	}
	event.Message = &message
	return nil
}

// maxImportedImages is the maximum number of images that an imported conversation
// keeps.
const maxImportedImages = 100

// takeImages replaces the contents of the images in users' messages by references. It
// returns the images, with their paths as names, to be stored as files. Images that a
// message could not have are omitted; the model is told that they were deleted.
func takeImages(events []session.Event) []llm.Image {
	var out []llm.Image
	total := 0
	taken := map[string]llm.Image{} // references by hash
	for n, e := range events {
		if e.Message == nil || len(e.Message.Images) == 0 {
			continue
		}
		message := *e.Message
		message.Images = nil
		for _, i := range e.Message.Images[:min(len(e.Message.Images), MaxImages)] {
			sum := sha256.Sum256(i.Data)
			hash := hex.EncodeToString(sum[:])
			if _, known := taken[hash]; !known {
				ref := llm.Image{MIMEType: i.MIMEType, Name: "images/omitted", Ref: hash}
				info, err := picture.Inspect(i.Data)
				if err == nil && len(out) < maxImportedImages && len(i.Data) <= min(MaxImage, MaxFileBytes-total) && max(info.Width, info.Height) <= MaxImagePixels {
					ref.MIMEType = info.MIMEType
					ref.Name = fmt.Sprintf("images/%d.%s", len(out)+1, strings.TrimPrefix(info.MIMEType, "image/"))
					total += len(i.Data)
					out = append(out, llm.Image{MIMEType: ref.MIMEType, Name: ref.Name, Data: i.Data})
				}
				taken[hash] = ref
			}
			message.Images = append(message.Images, taken[hash])
		}
		events[n].Message = &message
	}
	return out
}

// storeImages stores images as files.
func (c *fileChanges) storeImages(ctx context.Context, images []llm.Image) error {
	for _, i := range images {
		if err := c.store(ctx, i.Name, i.Data); err != nil {
			return err
		}
	}
	return nil
}

// imageModel reads the images of messages before it sends a request. It sends the
// last ones that fit into a request. It replaces the others by a text, and all of them
// if the model does not read images.
type imageModel struct {
	llm.Model
	w     *worker
	reads bool

	mu    sync.Mutex // guards the fields below
	sizes map[string]int64
	read  map[string]llm.Image // by Ref; empty if deleted
}

// Stream implements [llm.Model].
func (m *imageModel) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		r, err := m.resolve(ctx, r)
		if err != nil {
			yield(nil, fmt.Errorf("read images of conversation: %w", err))
			return
		}
		for e, err := range m.Model.Stream(ctx, r) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// resolve returns a request whose images have their content.
func (m *imageModel) resolve(ctx context.Context, r *llm.Request) (*llm.Request, error) {
	var refs []string
	for _, msg := range r.Messages {
		for _, part := range msg.Parts {
			if i, ok := part.(llm.Image); ok && i.Ref != "" {
				refs = append(refs, i.Ref)
			}
		}
	}
	if len(refs) == 0 {
		return r, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := 0
	if m.reads {
		if err := m.readSizes(ctx); err != nil {
			return nil, err
		}
		first = firstSent(refs, m.sizes)
	}
	out := *r
	out.Messages = slices.Clone(r.Messages)
	n := -1
	for k, msg := range out.Messages {
		if !slices.ContainsFunc(msg.Parts, isReference) {
			continue
		}
		parts := slices.Clone(msg.Parts)
		for at, part := range parts {
			if !isReference(part) {
				continue
			}
			n++
			var err error
			if parts[at], err = m.part(ctx, part.(llm.Image), n < first); err != nil {
				return nil, err
			}
		}
		out.Messages[k].Parts = parts
	}
	return &out, nil
}

func isReference(p llm.Part) bool {
	i, ok := p.(llm.Image)
	return ok && i.Ref != ""
}

// part returns an image with its content, or the text that replaces it.
func (m *imageModel) part(ctx context.Context, i llm.Image, omit bool) (llm.Part, error) {
	name := untrusted.New(i.Name).ForModel()
	switch {
	case !m.reads:
		return llm.Text("[You do not read images, so the image " + name + " is only a file in the working directory.]\n"), nil
	case omit:
		return llm.Text("[The image " + name + " is no longer shown, because of many later images.]\n"), nil
	}
	full, ok := m.read[i.Ref]
	if !ok {
		var err error
		if full, err = m.w.e.readImage(ctx, m.w.id, i.Ref); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		m.read[i.Ref] = full
	}
	if full.Data == nil {
		return llm.Text("[The image " + name + " was deleted.]\n"), nil
	}
	full.Name = i.Name
	return full, nil
}

// readSizes reads the sizes of all files, once per turn.
func (m *imageModel) readSizes(ctx context.Context) error {
	if m.sizes != nil {
		return nil
	}
	versions, err := m.w.e.imageVersions(ctx, m.w.id)
	if err != nil {
		return err
	}
	m.sizes, m.read = map[string]int64{}, map[string]llm.Image{}
	for _, a := range versions {
		m.sizes[a.SHA256] = a.Size
	}
	return nil
}

// firstSent returns the index of the first image that a request contains. Whenever
// there are too many, it moves past half of them, so that most requests start like the
// previous one.
func firstSent(refs []string, sizes map[string]int64) int {
	first, n, total := 0, 0, int64(0)
	for _, ref := range refs {
		n, total = n+1, total+sizes[ref]
		if n <= maxSent && total <= maxSentBytes {
			continue
		}
		for ; n > maxSent/2 || total > maxSentBytes/2; first++ {
			n, total = n-1, total-sizes[refs[first]]
		}
	}
	return first
}
