package replay

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// Options configures a [Recorder].
type Options struct {
	// Secrets must not appear in any file. If a request or response contains a
	// secret, Stream returns an error and stores nothing. Secrets shorter than
	// 8 bytes are ignored.
	Secrets []string
}

// Recorder is a model that records the responses of another model. It is safe
// for concurrent use, and several recorders may use the same directory.
type Recorder struct {
	model   llm.Model
	dir     string
	secrets []string
}

var _ llm.Model = (*Recorder)(nil)

// Record returns a model that stores the requests to m and their responses in a
// directory, creating the directory if necessary. It returns an error if the
// directory cannot be read or contains recordings of another model.
func Record(m llm.Model, dir string, o *Options) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("record to %s: %w", dir, err)
	}
	before, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("record to %s: %w", dir, err)
	}
	if before.name != "" && before.name != m.Name() {
		return nil, fmt.Errorf("record to %s: directory contains recordings of %s, not %s; choose another directory", dir, before.name, m.Name())
	}
	r := &Recorder{model: m, dir: dir}
	if o != nil {
		r.secrets = slices.DeleteFunc(slices.Clone(o.Secrets), func(s string) bool { return len(s) < 8 })
	}
	return r, nil
}

// Name returns the name of the recorded model.
func (r *Recorder) Name() string { return r.model.Name() }

// Stream implements [llm.Model] by calling the recorded model. It stores a
// response that ends normally or with a [*llm.CutError] or [*llm.StatusError].
// It stores nothing if ctx is done, the consumer stops, or the vendor cannot be
// reached. If storing fails, the stream ends with that error.
func (r *Recorder) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		kept := recording{Model: r.Name()}
		for e, err := range r.model.Stream(ctx, req) {
			done, over := e.(llm.Done)
			switch {
			case err != nil && (ctx.Err() != nil || !kept.fail(err)):
				yield(nil, err)
				return
			case over && err == nil:
				kept.Answer = newAnswer(&done.Answer)
			case err == nil:
				kept.Events = append(kept.Events, newEvent(e))
				if !yield(e, nil) {
					return
				}
				continue
			}
			if wrong := r.store(req, &kept); wrong != nil {
				yield(nil, kept.storeError(wrong))
				return
			}
			yield(e, err)
			return
		}
	}
}

// storeError returns the error of a stream whose recording could not be stored.
// It includes the part of the response that was already yielded.
func (r *recording) storeError(err error) error {
	if len(r.Events) == 0 || r.Answer == nil {
		return err
	}
	return &llm.CutError{Answer: r.Answer.answer(), Err: err}
}

// store writes a recording to its file.
func (r *Recorder) store(req *llm.Request, kept *recording) error {
	q, err := newRequest(req)
	if err != nil {
		return err
	}
	kept.Request = *q
	data := encode(kept)
	for _, s := range r.secrets {
		quoted := bytes.TrimSpace(encode(s))
		if bytes.Contains(data, []byte(s)) || bytes.Contains(data, quoted[1:len(quoted)-1]) {
			return errors.New("record answer: conversation contains a secret; remove the secret and try again")
		}
	}
	if err := write(r.dir, q.file(), data); err != nil {
		return fmt.Errorf("record answer: %w", err)
	}
	return nil
}

// write replaces a file atomically.
func write(dir, name string, data []byte) error {
	if len(data) > maxFile {
		return fmt.Errorf("recording too large (%d MiB, limit %d MiB)", len(data)>>20, maxFile>>20)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	part := name + "." + strings.ToLower(rand.Text()[:8])
	if err := root.WriteFile(part, data, 0o600); err != nil {
		_ = root.Remove(part) // fails if the file does not exist
		return err
	}
	return root.Rename(part, name)
}
