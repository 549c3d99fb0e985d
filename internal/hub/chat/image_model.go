package chat

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/llm"
)

// Limits for the images of a request to a model, those in results of tools included.
// Vendors accept larger images if there are at most 20, and count the bytes of the
// base64 form. If a limit is exceeded, fewer images are kept than the limit allows, so
// that most requests start like the previous one. The images of the last message are
// always kept.
const (
	maxSent      = 20
	keptImages   = 10
	maxSentBytes = 18 << 20
	keptBytes    = 14 << 20
)

// LimitImages returns a model that sends only images that m accepts: the last ones of a
// conversation that fit into a request, or none if reads is false. It replaces the
// others by texts. If the vendor refuses a request with images, it sends the request
// again without them.
func LimitImages(m llm.Model, reads bool) llm.Model {
	return &imageModel{Model: m, reads: reads, rejected: &rejectedImages{}}
}

// imageModel is the model of [LimitImages]. It also reads the images of messages, which
// requests of conversations contain as references.
type imageModel struct {
	llm.Model
	reads    bool
	files    func(context.Context) ([]store.Attachment, error)
	open     func(ctx context.Context, ref string) (llm.Image, error)
	rejected *rejectedImages
	notify   func() // called after a request was accepted only without images; may be nil

	mu    sync.Mutex // guards the fields below
	sizes map[string]int64
	read  map[string]llm.Image // by Ref; empty if deleted
}

// imageModel returns the model of a conversation.
func (w *worker) imageModel(s *Setup) *imageModel {
	return &imageModel{Model: s.Model, reads: s.ReadsImages, rejected: w.e.rejections.of(w.id, s.Model.Name()),
		files: func(ctx context.Context) ([]store.Attachment, error) { return w.e.imageVersions(ctx, w.id) },
		open:  func(ctx context.Context, ref string) (llm.Image, error) { return w.e.readImage(ctx, w.id, ref) },
		notify: func() {
			w.journal.queueEvent(eventRow{Event: Event{Type: Notice, Code: ImagesRejected, Text: imagesRejectedText}})
		},
	}
}

const imagesRejectedText = "The model's server rejected images of this conversation. The model continues without them."

// Stream implements [llm.Model].
func (m *imageModel) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		images := listImages(r)
		if len(images) == 0 {
			m.Model.Stream(ctx, r)(yield)
			return
		}
		if err := m.send(ctx, r, images, yield); err != nil {
			yield(nil, err)
		}
	}
}

// send sends a request. If the vendor rejects it, send sends it again without its newest
// images, and then without any. If the request fails before the first event, send
// returns the error.
func (m *imageModel) send(ctx context.Context, r *llm.Request, images []foundImage, yield func(llm.Event, error) bool) error {
	why, err := m.omissions(ctx, images)
	if err != nil {
		return err
	}
	var first error
	for {
		resolved, err := m.resolve(ctx, r, images, why)
		if err != nil {
			return err
		}
		var tried []foundImage // newly omitted
		for i, image := range images {
			if why[i] == rejectedImage && !m.rejected.has(image.key()) {
				tried = append(tried, image)
			}
		}
		err = sendOnce(ctx, m.Model, resolved, func(e llm.Event, err error) bool {
			if len(tried) > 0 {
				m.rejected.add(tried)
				if m.notify != nil {
					m.notify()
				}
				tried = nil
			}
			return yield(e, err)
		})
		if first == nil {
			first = err
		}
		if err == nil || !mayRejectImages(err) || !omitNewest(images, why) {
			if err == nil {
				return nil
			}
			return first
		}
	}
}

// sendOnce sends a request and yields its events. If the request fails before the first
// event, sendOnce returns the error and yields nothing.
func sendOnce(ctx context.Context, m llm.Model, r *llm.Request, yield func(llm.Event, error) bool) error {
	begun := false
	for e, err := range m.Stream(ctx, r) {
		if err != nil && !begun {
			return err
		}
		begun = true
		if !yield(e, err) {
			return nil
		}
	}
	return nil
}

// mayRejectImages reports whether a vendor may have refused a request because of its
// images. Vendors report this in several ways.
func mayRejectImages(err error) bool {
	refused, ok := errors.AsType[*llm.StatusError](err)
	return ok && slices.Contains([]int{400, 404, 413, 415, 422}, refused.Code) && !exceedsContext(refused)
}

// contextErrors are parts of the errors with which vendors refuse a request that
// exceeds the context window.
var contextErrors = []string{"context_length", "context length", "context window", "context size", "context limit", "maximum context", "exceed_context", "prompt is too long", "prompt too long", "input is too long", "input length", "too many tokens", "token limit", "maximum number of tokens", "token count"}

// exceedsContext reports whether a vendor refused a request because it exceeds the
// context window. It would accept the same images in a shorter conversation.
func exceedsContext(refused *llm.StatusError) bool {
	text := strings.ToLower(refused.Kind + " " + refused.Message)
	return slices.ContainsFunc(contextErrors, func(part string) bool { return strings.Contains(text, part) })
}

// omitNewest marks the sent images after the last answer as rejected, or all sent images
// if there are none after it. It returns false if no images are sent.
func omitNewest(images []foundImage, why []omission) bool {
	newest := false
	for i := range images {
		newest = newest || why[i] == sentImage && images[i].newest
	}
	found := false
	for i := range images {
		if why[i] == sentImage && (images[i].newest || !newest) {
			why[i], found = rejectedImage, true
		}
	}
	return found
}

// foundImage is an image in a request.
type foundImage struct {
	llm.Image
	newest bool // whether it follows the last answer
}

// key identifies the content of an image.
func (i foundImage) key() string {
	if i.Ref != "" {
		return i.Ref
	}
	sum := sha256.Sum256(i.Data)
	return hex.EncodeToString(sum[:])
}

// listImages returns the images of a request, including those in tool results.
func listImages(r *llm.Request) []foundImage {
	var out []foundImage
	last := -1
	for n, msg := range r.Messages {
		if msg.Role == llm.Assistant {
			last = n
		}
	}
	for n, msg := range r.Messages {
		mapImages(msg.Parts, func(i llm.Image) llm.Part {
			out = append(out, foundImage{i, n > last})
			return i
		})
	}
	return out
}

// mapImages returns parts with their images replaced, including those in results. It
// returns the same slice if there are no images.
func mapImages(parts []llm.Part, replace func(llm.Image) llm.Part) []llm.Part {
	out := parts
	for i, part := range parts {
		var with llm.Part
		switch p := part.(type) {
		case llm.Image:
			with = replace(p)
		case llm.Result:
			if !slices.ContainsFunc(p.Parts, func(p llm.Part) bool { _, ok := p.(llm.Image); return ok }) {
				continue
			}
			p.Parts = mapImages(p.Parts, replace)
			with = p
		default:
			continue
		}
		if &out[0] == &parts[0] {
			out = slices.Clone(parts)
		}
		out[i] = with
	}
	return out
}

// omission is the reason why a request does not contain an image.
type omission int

const (
	sentImage omission = iota
	unreadableImage
	earlierImage
	rejectedImage
)

// omissions returns, for each image, whether to send it or why to omit it, according
// to the limits and earlier requests.
func (m *imageModel) omissions(ctx context.Context, images []foundImage) ([]omission, error) {
	why := make([]omission, len(images))
	if !m.reads {
		for i := range why {
			why[i] = unreadableImage
		}
		return why, nil
	}
	var counted []int // images that are not rejected
	var sizes []int64
	for i, image := range images {
		if !m.rejected.isEmpty() && m.rejected.has(image.key()) {
			why[i] = rejectedImage
			continue
		}
		size := int64(len(image.Data))
		if image.Ref != "" {
			var err error
			if size, err = m.size(ctx, image.Ref); err != nil {
				return nil, err
			}
		}
		counted, sizes = append(counted, i), append(sizes, int64(base64.StdEncoding.EncodedLen(int(size))))
	}
	for _, i := range counted[:firstSent(sizes)] {
		why[i] = earlierImage
	}
	return why, nil
}

// firstSent returns the index of the first image that a request contains.
func firstSent(sizes []int64) int {
	first, n, total := 0, 0, int64(0)
	for _, size := range sizes {
		n, total = n+1, total+size
		if n <= maxSent && total <= maxSentBytes {
			continue
		}
		for ; n > keptImages || total > keptBytes; first++ {
			n, total = n-1, total-sizes[first]
		}
	}
	return first
}

// resolve returns a request whose images have their content or are replaced by texts.
func (m *imageModel) resolve(ctx context.Context, r *llm.Request, images []foundImage, why []omission) (*llm.Request, error) {
	out := *r
	out.Messages = slices.Clone(r.Messages)
	n := 0
	var failed error
	for k := range out.Messages {
		msg := &out.Messages[k]
		msg.Parts = mapImages(msg.Parts, func(i llm.Image) llm.Part {
			part, err := m.part(ctx, i, why[n])
			n++
			failed = errors.Join(failed, err)
			return part
		})
	}
	return &out, failed
}

// part returns the message part for an image: the image with its content, or, if why
// is a reason to omit the image, a text that replaces it.
func (m *imageModel) part(ctx context.Context, i llm.Image, why omission) (llm.Part, error) {
	name := ""
	if i.Name != "" {
		name = " " + untrusted.New(i.Name).ForModel()
	}
	switch why {
	case unreadableImage:
		text := "[Image" + name + " omitted: this model does not accept images."
		if name != "" {
			text += " The file is in the working directory."
		}
		return llm.Text(text + "]\n"), nil
	case earlierImage:
		return llm.Text("[Image" + name + " omitted: newer images fill the request.]\n"), nil
	case rejectedImage:
		return llm.Text("[Image" + name + " omitted: the model's server rejected it.]\n"), nil
	}
	if i.Ref == "" {
		return i, nil
	}
	full, err := m.content(ctx, i.Ref)
	if err != nil {
		return nil, err
	}
	if full.Data == nil {
		return llm.Text("[Image" + name + " omitted: it was deleted.]\n"), nil
	}
	full.Name = i.Name
	return full, nil
}

// content reads an image, once per turn. It returns an image without content if the
// image was deleted.
func (m *imageModel) content(ctx context.Context, ref string) (llm.Image, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if full, ok := m.read[ref]; ok || m.open == nil {
		return full, nil
	}
	full, err := m.open(ctx, ref)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return llm.Image{}, errors.Join(errors.New("read images of conversation"), err)
	}
	if m.read == nil {
		m.read = map[string]llm.Image{}
	}
	m.read[ref] = full
	return full, nil
}

// size returns the size of an image of a message. It reads those of all files, once per
// turn.
func (m *imageModel) size(ctx context.Context, ref string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sizes == nil && m.files != nil {
		all, err := m.files(ctx)
		if err != nil {
			return 0, errors.Join(errors.New("read images of conversation"), err)
		}
		m.sizes = map[string]int64{}
		for _, a := range all {
			m.sizes[a.SHA256] = a.Size
		}
	}
	return m.sizes[ref], nil
}

// rejectedImages are the images of a conversation that a model's server rejected.
// They are kept in the memory of this node, so another node has to find out again.
// The zero value is empty. It is safe for concurrent use.
type rejectedImages struct {
	mu   sync.Mutex
	keys map[string]bool
}

// maxRejected is the maximum number of rejected images to remember for a
// conversation.
const maxRejected = 1000

// isEmpty reports whether no image was rejected. In that case, callers need not
// compute keys.
func (r *rejectedImages) isEmpty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys) == 0
}

func (r *rejectedImages) has(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[key]
}

func (r *rejectedImages) add(images []foundImage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil || len(r.keys) > maxRejected {
		r.keys = map[string]bool{}
	}
	for _, i := range images {
		r.keys[i.key()] = true
	}
}

func (r *rejectedImages) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.keys)
}

// rejections holds the rejected images of recent conversations and models. The zero
// value is empty. It is safe for concurrent use.
type rejections struct {
	mu  sync.Mutex
	all map[[2]string]*rejectedImages // by conversation and model
}

// maxRejections is the maximum number of conversations in rejections.
const maxRejections = 1000

func (r *rejections) of(id, model string) *rejectedImages {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= maxRejections {
		r.all = map[[2]string]*rejectedImages{}
	}
	key := [2]string{id, model}
	if r.all[key] == nil {
		r.all[key] = &rejectedImages{}
	}
	return r.all[key]
}

// forget removes the rejected images of a conversation whose next requests contain
// other images. The model may accept an image that was rejected together with others.
func (r *rejections) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, rejected := range r.all {
		if key[0] == id {
			rejected.clear()
		}
	}
}
