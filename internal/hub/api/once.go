package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// RequestRetention is how long the record of a request with an Idempotency-Key
// is stored. A user can have at most [store.MaxRequests] recorded requests.
// Further requests are refused, because forgetting an older one would allow it
// to be executed again. The most recent responses to a user are stored too, up
// to [store.MaxResponseBytes] in total.
const RequestRetention = 24 * time.Hour

// repeatWait is how long a repeated request waits for the response to the first one.
const repeatWait = 10 * time.Second

// withoutKeys lists the POST operations whose requests need not be recorded. Most
// of them store nothing. The operation "say" stores the key with the conversation,
// and a repeated "migrate" or "migrate-source" changes nothing.
var withoutKeys = map[string]bool{"say": true, "migrate": true, "migrate-source": true, "check-draft": true, "find-draft": true, "pack-draft": true, "look-at-source": true, "check-source": true, "test-server": true, "list-offered-models": true}

// keyParameter describes the Idempotency-Key header of the POST operations that
// are not in withoutKeys.
var keyParameter = &huma.Param{
	Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
	Description: fmt.Sprintf("Your unique ID of the request, at most %d bytes, plain or quoted: a repetition within %d hours on any node gets the response of the success, if you may still see it; at most %d in that time", store.MaxLabel, RequestRetention/time.Hour, store.MaxRequests),
}

// Requests records requests with an Idempotency-Key, so that a client can repeat
// them on any node.
type Requests struct {
	DB     *store.DB
	Cipher *encryption.Cipher // encrypts responses, which may contain secrets
}

// recordedResponse is the part of a response that is repeated, and the permissions
// of the user who received it.
type recordedResponse struct {
	Type     string `json:"type"`
	Location string `json:"location,omitempty"`
	Body     []byte `json:"body,omitempty"`

	Admin  bool                             `json:"admin,omitempty"`
	Groups map[account.GroupID]account.Role `json:"groups,omitempty"`
}

// once returns middleware that executes a request with an Idempotency-Key at most
// once. It records the response if the request succeeds, and nothing if the request
// fails. A repetition gets the recorded response, even on another node. It is
// refused if the first node died before it recorded the response, or if the user
// has since lost a permission or can no longer read the result.
func (s *Server) once(op *huma.Operation, limit time.Duration) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		if s.Requests.DB == nil || r.Header.Get("Idempotency-Key") == "" || isDryRun(op, r) {
			next(ctx)
			return
		}
		key, err := IdempotencyKey(r.Header.Get("Idempotency-Key"))
		if err != nil {
			s.WriteProblem(w, r, err)
			return
		}
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // not supported by every server
		largest := maxBodyBytes(op)
		body, err := io.ReadAll(io.LimitReader(r.Body, largest))
		again := r.WithContext(ctx.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || int64(len(body)) == largest { // the operation reports it
			rest := io.Reader(r.Body)
			if err != nil {
				rest = failingReader{err}
			}
			again.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), rest))
			next(humago.NewContext(op, again, w))
			return
		}
		p := account.FromContext(ctx.Context())
		request := store.Request{Principal: string(p.User), Label: key}
		digest := digestRequest(r, p.Scopes, body)
		request.Digest, err = s.Requests.Cipher.Encrypt(digest, digestLabel(request))
		if err == nil {
			err = s.Requests.DB.Requests.Begin(ctx.Context(), request, time.Now().Add(-RequestRetention))
		}
		switch {
		case errors.Is(err, store.ErrExists):
			s.repeat(w, again, op, request, digest)
			return
		case errors.Is(err, store.ErrTooMany):
			s.WriteProblem(w, r, s.tooManyKeys(ctx.Context(), request.Principal))
			return
		case err != nil:
			s.WriteProblem(w, r, err)
			return
		}
		recorder := &responseCopy{ResponseWriter: w, status: http.StatusOK}
		finished := false
		defer func() { s.Requests.end(context.WithoutCancel(ctx.Context()), s, p, request, recorder, finished) }()
		next(humago.NewContext(op, again, recorder))
		finished = true
	}
}

// isDryRun reports whether a request changes nothing, so that it can be executed
// again. The response to such a request is not stored, because it may be large.
func isDryRun(op *huma.Operation, r *http.Request) bool {
	dry, err := strconv.ParseBool(r.URL.Query().Get("dry"))
	return op.OperationID == "apply" && dry && err == nil
}

// maxBodyBytes returns the size at which an operation starts to reject request
// bodies.
func maxBodyBytes(op *huma.Operation) int64 {
	return cmp.Or(op.MaxBodyBytes, 1<<20) // as endpoint.Register does
}

// digestRequest returns the hash of a request. The hash is stored encrypted,
// because the body may contain a password, which the hash would help to guess.
func digestRequest(r *http.Request, scopes account.Scopes, body []byte) []byte {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q ", r.URL.Path, r.URL.RawQuery, scopes.String(), r.Header.Get("Content-Type"))
	sum.Write(body)
	return sum.Sum(nil)
}

// end records the response to a request, or forgets the request if it failed.
func (q Requests) end(ctx context.Context, s *Server, p account.Principal, r store.Request, response *responseCopy, finished bool) {
	ctx, stop := context.WithTimeout(ctx, OperationTimeout)
	defer stop()
	var err error
	switch {
	case !finished: // the handler panicked; the outcome is unknown
	case response.status >= 300:
		err = q.DB.Requests.Delete(ctx, r.Principal, r.Label)
	default:
		var text []byte
		text, err = json.Marshal(recordedResponse{Type: response.Header().Get("Content-Type"), Location: response.Header().Get("Location"), Body: response.body.Bytes(), Admin: p.Admin, Groups: p.Groups})
		if err == nil {
			r.Status = int64(response.status)
			r.Response, err = q.encrypt(text, r)
		}
		if err == nil {
			err = q.DB.Requests.End(ctx, r)
		}
		if errors.Is(err, store.ErrInvalid) { // too large
			r.Response = ""
			err = q.DB.Requests.End(ctx, r)
		}
	}
	if err != nil {
		s.Log.Warn("couldn't record the response to a request with an Idempotency-Key", "error", err)
	}
}

// encrypt encrypts a response in parts, because a cipher limits the size of a value.
func (q Requests) encrypt(text []byte, r store.Request) (string, error) {
	var parts []string
	all := slices.Collect(slices.Chunk(text, encryption.MaxValue))
	for i, part := range all {
		sealed, err := q.Cipher.Encrypt(part, partLabel(r, i, len(all)))
		if err != nil {
			return "", err
		}
		parts = append(parts, sealed)
	}
	return strings.Join(parts, " "), nil
}

func (q Requests) decrypt(response string, r store.Request) ([]byte, error) {
	var text []byte
	parts := strings.Fields(response)
	for i, sealed := range parts {
		part, err := q.Cipher.Decrypt(sealed, partLabel(r, i, len(parts)))
		if err != nil {
			return nil, err
		}
		text = append(text, part...)
	}
	return text, nil
}

// partLabel returns the label of part i of the n encrypted parts of a response.
func partLabel(r store.Request, i, n int) encryption.Label {
	return encryption.Label{Owner: "request/" + r.Principal, Name: fmt.Sprintf("part %d of %d of %s", i+1, n, r.Label)}
}

func digestLabel(r store.Request) encryption.Label {
	return encryption.Label{Owner: "request/" + r.Principal, Name: "digest of " + r.Label}
}

// isSame reports whether a recorded request has the given digest.
func (q Requests) isSame(r store.Request, digest []byte) (bool, error) {
	recorded, err := q.Cipher.Decrypt(r.Digest, digestLabel(r))
	return bytes.Equal(recorded, digest), err
}

// repeat responds to a repeated request with the given digest. If the first request
// is still running, repeat waits for it.
func (s *Server) repeat(w http.ResponseWriter, r *http.Request, op *huma.Operation, request store.Request, digest []byte) {
	late := time.After(repeatWait)
	for {
		first, err := s.Requests.DB.Requests.Get(r.Context(), request.Principal, request.Label)
		same := false
		if err == nil {
			same, err = s.Requests.isSame(first, digest)
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
			err = &Problem{Status: 409, Code: "key_failed", Detail: "the first request with this Idempotency-Key has just failed", Next: "send the request again"}
		case err != nil:
		case !same:
			err = &Problem{Status: 422, Code: "key_used", Detail: "another request was sent with this Idempotency-Key", Next: "send each request with its own key, and repeat a request with the same key"}
		case first.Status != 0:
			if err = s.writeRecorded(w, r, op, first); err == nil {
				return
			}
		}
		if err != nil {
			s.WriteProblem(w, r, err)
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
			continue
		case <-r.Context().Done():
		case <-late:
		}
		s.WriteProblem(w, r, &Problem{Status: 409, Code: "key_pending", Detail: "the first request with this Idempotency-Key has no response yet; its node may have failed",
			Next: "send it again later; if the problem persists, check what exists, and use another key", Header: http.Header{"Retry-After": {"10"}}})
		return
	}
}

// tooManyKeys returns the error for a user with too many recorded requests.
func (s *Server) tooManyKeys(ctx context.Context, principal string) *Problem {
	now := time.Now()
	wait := time.Minute
	if at, err := s.Requests.DB.Requests.Oldest(ctx, principal, now.Add(-RequestRetention)); err == nil {
		wait = max(wait, at.Add(RequestRetention).Sub(now))
	}
	return &Problem{Status: 429, Code: "too_many_keys", Detail: fmt.Sprintf("too many requests with an Idempotency-Key in %d hours (limit %d)", RequestRetention/time.Hour, store.MaxRequests),
		Next: "send the request later, or without a key", Header: http.Header{"Retry-After": {strconv.Itoa(int(wait.Seconds()) + 1)}}}
}

func (s *Server) writeRecorded(w http.ResponseWriter, r *http.Request, op *huma.Operation, first store.Request) error {
	if first.Response == "" {
		return &Problem{Status: 409, Code: "key_done", Detail: "the request with this Idempotency-Key succeeded, but its response is no longer stored", Next: "read what it created; the lists show it"}
	}
	text, err := s.Requests.decrypt(first.Response, first)
	if err != nil {
		return err
	}
	var response recordedResponse
	if err := json.Unmarshal(text, &response); err != nil {
		return err
	}
	if err := s.checkRepetition(r, op, &response); err != nil {
		return err
	}
	for name, value := range map[string]string{"Content-Type": response.Type, "Location": response.Location} {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(int(first.Status))
	w.Write(response.Body)
	return nil
}

// responseCopy copies a response as it is written.
type responseCopy struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (c *responseCopy) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *responseCopy) Write(b []byte) (int, error) {
	c.body.Write(b)
	return c.ResponseWriter.Write(b)
}

// Unwrap gives [http.ResponseController] access to the wrapped writer.
func (c *responseCopy) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// failingReader is a reader that always fails with err.
type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// IdempotencyKey parses an Idempotency-Key header: plain text, or a string as
// defined by RFC 9651.
func IdempotencyKey(header string) (string, error) {
	header = strings.TrimSpace(header)
	if !strings.HasPrefix(header, `"`) {
		return header, checkKey(header)
	}
	inner, closed := strings.CutSuffix(header[1:], `"`)
	var key strings.Builder
	for i := 0; i < len(inner) && closed; i++ {
		if inner[i] == '\\' && i+1 < len(inner) && (inner[i+1] == '"' || inner[i+1] == '\\') {
			i++
		} else if inner[i] == '"' || inner[i] == '\\' {
			closed = false
		}
		key.WriteByte(inner[i])
	}
	if !closed || len(header) == 1 || key.Len() == 0 {
		return "", InvalidFields(Fault{Where: "header.Idempotency-Key", Message: "malformed quoted string"})
	}
	return key.String(), checkKey(key.String())
}

func checkKey(key string) error {
	if len(key) > store.MaxLabel || !utf8.ValidString(key) {
		return InvalidFields(Fault{Where: "header.Idempotency-Key", Message: fmt.Sprintf("must be UTF-8 of at most %d bytes", store.MaxLabel)})
	}
	return nil
}
