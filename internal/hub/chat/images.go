package chat

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/filetype"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/picture"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Limits for the images of a message. Some vendors refuse more. They count the bytes of
// the base64 form, which is a third larger: an image may have 5 MiB.
const (
	MaxImages      = 8
	MaxImage       = 15 << 18 // maximum size of an image, in bytes
	MaxImageBytes  = 10 << 20 // maximum total size, in bytes
	MaxImagePixels = 8000     // maximum width and height, in pixels
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
// [ErrInvalid] if a file is not an image of a type that models accept.
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
		if at < 0 && skillfile.IsHash(ref.SHA256) { // deleted: the rest of the message can still be sent again
			out[i] = llm.Image{MIMEType: filetype.ByName(ref.Path), Name: ref.Path, Ref: ref.SHA256}
			continue
		}
		if at < 0 {
			return nil, &ImageError{ref.Path, "image_gone", "not a file of the conversation; upload it first"}
		}
		file := versions[at]
		if total += file.Size; file.Size > MaxImage || total > MaxImageBytes {
			return nil, &ImageError{ref.Path, "image_size", fmt.Sprintf("too large (%d bytes, %d with the images before it; limit %d bytes, %d for all)", file.Size, total, MaxImage, MaxImageBytes)}
		}
		data, err := e.db.Attachments.ReadContent(ctx, id, file.SHA256)
		if err != nil {
			return nil, err
		}
		info, err := checkImage(data)
		switch {
		case err != nil:
			return nil, &ImageError{ref.Path, "image_type", err.Error()}
		case max(info.Width, info.Height) > MaxImagePixels:
			return nil, &ImageError{ref.Path, "image_pixels", fmt.Sprintf("%d × %d pixels, limit %d × %d", info.Width, info.Height, MaxImagePixels, MaxImagePixels)}
		}
		out[i] = llm.Image{MIMEType: info.MIMEType, Name: ref.Path, Ref: file.SHA256}
	}
	return out, nil
}

// ImageError is returned if an image cannot be sent with a message. It matches
// [ErrInvalid].
type ImageError struct {
	Path string
	// Code is "image_gone", "image_type", "image_size" or "image_pixels".
	Code   string
	reason string
}

// Error returns the path and the reason.
func (e *ImageError) Error() string { return fmt.Sprintf("image %q: %s", e.Path, e.reason) }

// Is reports whether target is [ErrInvalid].
func (e *ImageError) Is(target error) bool { return target == ErrInvalid }

// checkImage returns the type and the size of an image. It fails if the image is
// damaged. It does not decode an image whose width or height exceeds
// [MaxImagePixels].
func checkImage(data []byte) (picture.Info, error) {
	info, err := picture.Inspect(data)
	if err != nil {
		return info, err
	}
	plain, err := picture.WithoutMetadata(data)
	if err == nil && max(info.Width, info.Height) <= MaxImagePixels {
		err = picture.Verify(plain)
	}
	return info, err
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

// CheckImage fails like [Engine.ReadImage], but does not read the content, and does not
// check that it is an image.
func (e *Engine) CheckImage(ctx context.Context, p account.Principal, id, ref string) error {
	if _, err := e.authorize(ctx, p, account.SessionRead, id); err != nil {
		return err
	}
	versions, err := e.imageVersions(ctx, id)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(versions, func(a store.Attachment) bool { return a.SHA256 == ref }) {
		return fmt.Errorf("image %.64q: %w", ref, store.ErrNotFound)
	}
	return nil
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

// embeddedImages describes the images in an export.
type embeddedImages struct {
	hashes map[string]string // by their references; "" if the image is left out
	count  int
	bytes  int
}

// add adds an image, and reports whether the export contains it. add leaves out an image
// with which the export would exceed the limits of an import.
func (m *embeddedImages) add(ref string, data []byte) bool {
	if m.count == maxImportedImages || m.bytes+len(data) > maxExportedImages {
		m.hashes[ref] = ""
		return false
	}
	m.count++
	m.bytes += len(data)
	sum := sha256.Sum256(data) // the stored content has metadata
	m.hashes[ref] = hex.EncodeToString(sum[:])
	return true
}

// embedImages adds the contents of the images in a user's message that embedded permits,
// each once: further messages refer to the hash. An image that is left out keeps its
// reference, and one that was deleted has none.
func (e *Engine) embedImages(ctx context.Context, id string, event *session.Event, embedded *embeddedImages) error {
	if event.Message == nil || len(event.Message.Images) == 0 {
		return nil
	}
	message := *event.Message
	message.Images = slices.Clone(message.Images)
	for i := range message.Images {
		image := &message.Images[i]
		if sum, known := embedded.hashes[image.Ref]; known {
			image.Ref = cmp.Or(sum, image.Ref)
			continue
		}
		full, err := e.readImage(ctx, id, image.Ref)
		switch {
		case errors.Is(err, store.ErrNotFound):
			image.Ref = ""
		case err != nil:
			return err
		case embedded.add(image.Ref, full.Data):
			image.Data, image.Ref = full.Data, ""
		}
	}
	event.Message = &message
	return nil
}

// Limits of imports. Exports leave further images out.
const (
	maxImportedImages = 100      // of a conversation
	maxExportedImages = 64 << 20 // bytes
)

// takeImages replaces the contents of the images in users' messages by references. It
// returns the images, with their paths as names, to be stored as files. It omits
// images that are not allowed in messages or have no content; the model is told that
// they were deleted.
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
			if len(i.Data) == 0 && skillfile.IsHash(i.Ref) {
				hash = i.Ref
			}
			if _, known := taken[hash]; !known {
				ref := llm.Image{MIMEType: i.MIMEType, Name: "images/omitted", Ref: hash}
				if info, err := checkImage(i.Data); err == nil && len(out) < maxImportedImages && len(i.Data) <= min(MaxImage, MaxFileBytes-total) && max(info.Width, info.Height) <= MaxImagePixels {
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

func (c *fileChanges) storeImages(ctx context.Context, images []llm.Image) error {
	for _, i := range images {
		if err := c.store(ctx, i.Name, i.Data); err != nil {
			return err
		}
	}
	return nil
}
