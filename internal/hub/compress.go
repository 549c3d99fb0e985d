package hub

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/metrics"
	"github.com/loadout-dev/loadout/internal/hub/page"
)

// minCompressed is the minimum size, in bytes, of a response's first write for
// the response to be compressed. Compressing smaller responses saves nothing.
const minCompressed = 1 << 10

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for an invalid level
	return w
}}

// compressText returns a writer that compresses JSON responses of the API, and the
// metrics, for clients that accept gzip. The caller must call end after the handler has
// returned. Other responses, such as event streams and packages, are passed
// through unchanged.
func compressText(w http.ResponseWriter, r *http.Request) (_ http.ResponseWriter, end func()) {
	text := strings.HasPrefix(r.URL.Path, api.Prefix+"/") || r.URL.Path == "/openapi.json" || r.URL.Path == "/metrics"
	if !text || r.Method == http.MethodHead || !page.AcceptsGzip(r) {
		return w, func() {}
	}
	c := &compressor{ResponseWriter: w}
	return c, c.end
}

// compressor delays the header until it knows whether to compress.
type compressor struct {
	http.ResponseWriter
	status int // status code of the delayed header; 0 if there is none
	begun  bool
	gzip   *gzip.Writer
}

// Unwrap supports [http.ResponseController].
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *compressor) WriteHeader(status int) {
	if c.begun || status < http.StatusOK {
		c.ResponseWriter.WriteHeader(status)
		return
	}
	c.status = status
}

func (c *compressor) Write(p []byte) (int, error) {
	if !c.begun {
		c.begin(len(p) >= minCompressed)
	}
	if c.gzip != nil {
		return c.gzip.Write(p)
	}
	return c.ResponseWriter.Write(p)
}

// begin sends the header. If large is set and the response is JSON or has metrics,
// begin starts compressing the body.
func (c *compressor) begin(large bool) {
	c.begun = true
	h := c.Header()
	kind := h.Get("Content-Type")
	if media, _, _ := strings.Cut(kind, ";"); media == "application/json" || kind == metrics.ContentType {
		h.Add("Vary", "Accept-Encoding")
		if large && h.Get("Content-Encoding") == "" {
			h.Set("Content-Encoding", "gzip")
			h.Del("Content-Length")
			c.gzip = gzipWriters.Get().(*gzip.Writer)
			c.gzip.Reset(c.ResponseWriter)
		}
	}
	if c.status != 0 {
		c.ResponseWriter.WriteHeader(c.status)
	}
}

// FlushError supports [http.ResponseController].
func (c *compressor) FlushError() error {
	if !c.begun {
		c.begin(false)
	}
	if c.gzip != nil {
		if err := c.gzip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// end sends a delayed header and the rest of the compressed data.
func (c *compressor) end() {
	if !c.begun && c.status != 0 {
		c.begin(false)
	}
	if c.gzip != nil {
		_ = c.gzip.Close() // the client is gone; the connection reports it
		gzipWriters.Put(c.gzip)
		c.gzip = nil
	}
}
