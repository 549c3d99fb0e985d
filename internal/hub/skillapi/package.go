package skillapi

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// downloadTime is the timeout for sending a package or a file.
const downloadTime = 5 * time.Minute

// Wildcards for a file path, in the syntax of the mux and of OpenAPI.
const (
	fileRest  = "{path...}"
	fileParam = "{path}"
)

// addVersionFiles adds the operations that return a version's files.
func (h *Handlers) addVersionFiles() {
	download := api.Operation("get-package", "GET", "/skills/{skill}/versions/{version}/package", "Download the package of a version: a ZIP of one folder, always with the same bytes")
	api.Add(h.Server, download, func(_ context.Context, in *VersionPath) (*huma.StreamResponse, error) {
		return h.streamFile(func(w http.ResponseWriter, r *http.Request) error { return h.servePackage(w, r, in) })
	})
	file := api.Operation("get-file", "GET", "/skills/{skill}/versions/{version}/files/"+fileRest, "Get a file of a version: text as text/plain, images as such, and all others as a download")
	api.Add(h.Server, file, func(_ context.Context, in *FilePath) (*huma.StreamResponse, error) {
		return h.streamFile(func(w http.ResponseWriter, r *http.Request) error { return h.serveFile(w, r, in) })
	})
	paths := h.OpenAPI().Paths
	documentResponses(paths[download.Path].Get, map[string]string{"200": "The package", "304": "The package has not changed"}, "application/zip")
	documentResponses(paths[file.Path].Get, map[string]string{"200": "The file", "206": "The requested part of the file", "304": "The file has not changed"},
		"text/plain", "application/octet-stream", "image/png", "image/jpeg", "image/gif", "image/webp")
	paths[strings.Replace(file.Path, fileRest, fileParam, 1)] = paths[file.Path]
	delete(paths, file.Path)
}

// FilePath identifies a file of a version.
type FilePath struct {
	VersionPath
	Path string `path:"path" maxLength:"1024" doc:"Path in the manifest, with slashes"`
}

// documentResponses adds an operation's non-JSON responses to the OpenAPI document.
func documentResponses(op *huma.Operation, statuses map[string]string, kinds ...string) {
	for status, what := range statuses {
		op.Responses[status] = &huma.Response{Description: what, Content: map[string]*huma.MediaType{}}
		if status == "304" {
			continue
		}
		for _, kind := range kinds {
			op.Responses[status].Content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
		}
	}
}

// streamFile returns a response that f writes. If f returns an error, it must not
// have written anything.
func (h *Handlers) streamFile(f func(http.ResponseWriter, *http.Request) error) (*huma.StreamResponse, error) {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		bounded, stop := context.WithTimeoutCause(r.Context(), downloadTime, api.ErrTimeout)
		defer stop()
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTime)) // not supported by every server
		if err := f(w, r.WithContext(bounded)); err != nil {
			h.WriteProblem(w, r, err)
		}
	}}, nil
}

func (h *Handlers) servePackage(w http.ResponseWriter, r *http.Request, in *VersionPath) error {
	a, err := h.Library.Download(r.Context(), account.FromContext(r.Context()), in.Skill, in.number())
	if err != nil {
		return err
	}
	defer a.Close()
	setCaching(w.Header(), a.ETag)
	if matchesETag(r, a.ETag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", attachmentHeader(a.FileName))
	if r.Method == http.MethodHead {
		return nil
	}
	n, err := a.WriteTo(w)
	if err != nil && n > 0 {
		panic(http.ErrAbortHandler) // abort, so that the client does not accept a partial package
	}
	if err != nil {
		for _, name := range []string{"Etag", "Content-Disposition"} {
			w.Header().Del(name)
		}
	}
	return err
}

func (h *Handlers) serveFile(w http.ResponseWriter, r *http.Request, in *FilePath) error {
	ctx := r.Context()
	p := account.FromContext(ctx)
	files, err := h.Library.Manifest(ctx, p, in.Skill, in.number())
	if err != nil {
		return err
	}
	at, ok := files.Find(in.Path)
	if !ok {
		return fmt.Errorf("file %.100q: %w", in.Path, store.ErrNotFound)
	}
	data, err := h.readFile(ctx, p, in, files)
	if err != nil {
		return err
	}
	kind, shown := contentType(data)
	setCaching(w.Header(), `"sha256:`+at.SHA256+`"`)
	w.Header().Set("Content-Type", kind)
	if !shown {
		w.Header().Set("Content-Disposition", attachmentHeader(path.Base(at.Path)))
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	return nil
}

// readFile returns the contents of a file in the given manifest.
func (h *Handlers) readFile(ctx context.Context, p account.Principal, in *FilePath, files skill.Manifest) ([]byte, error) {
	b, err := h.Library.Open(ctx, p, in.Skill, in.number())
	if err != nil {
		return nil, err
	}
	defer b.Close()
	data, err := fs.ReadFile(b.FS, in.Path)
	if at, _ := files.Find(in.Path); err == nil && skillfile.Hash(data) != at.SHA256 {
		err = fmt.Errorf("file %.100q: %w", in.Path, store.ErrConflict) // the current version has changed
	}
	return data, err
}

// contentType returns the media type for a file and whether a browser may display
// it. Files are never served as pages or scripts of the hub.
func contentType(data []byte) (kind string, shown bool) {
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind, true
	}
	if utf8.Valid(data) && !bytes.ContainsRune(data, 0) {
		return "text/plain; charset=utf-8", true
	}
	return "application/octet-stream", false
}

// setCaching permits caching with revalidation.
func setCaching(header http.Header, tag string) {
	header.Set("ETag", tag)
	header.Set("Cache-Control", "private, no-cache")
}

// matchesETag reports whether the client already has the content with this ETag.
func matchesETag(r *http.Request, tag string) bool {
	for _, line := range r.Header.Values("If-None-Match") {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
				return true
			}
		}
	}
	return false
}

// attachmentHeader returns a Content-Disposition value that saves a file under the
// given name. RFC 6266 permits any characters; old clients get an ASCII name.
func attachmentHeader(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%/`, r) {
			return '_'
		}
		return r
	}, name)
	out := `attachment; filename="` + plain + `"`
	if plain != name {
		out += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	return out
}
