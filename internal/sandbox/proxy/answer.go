package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"
)

// maxAnswered is the maximum number of bytes of a request that
// [Options.Answer] receives.
const maxAnswered = 256 << 10

// Request is a request of a script that the proxy answers itself. All strings
// come from the script.
type Request struct {
	Host   string // normalized, unless the request is invalid
	Port   uint16 // 0 if the request is invalid
	Method string // CONNECT for a tunnel
	URL    string // as in the request line; "" for a tunnel
	// Data is the request line, the header and the body. For a tunnel, it is
	// the data sent if the proxy cannot parse it. It is truncated to 256 KiB.
	Data []byte
}

// answer responds to a request with the content that Options.Answer returns.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, d *Decision, t target) {
	defer s.log(d)
	var data bytes.Buffer
	fmt.Fprintf(&data, "%s %s\r\nHost: %s\r\n", r.Method, r.RequestURI, r.Host)
	r.Header.Write(&data)
	data.WriteString("\r\n")
	n, _ := io.Copy(&data, io.LimitReader(r.Body, int64(max(0, maxAnswered-data.Len())))) // an incomplete body is evidence, too
	d.Bytes = n
	out := s.opts.Answer(Request{Host: t.host, Port: t.port, Method: r.Method, URL: r.RequestURI, Data: data.Bytes()})
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(out)
}

// answerInvalid reports an invalid request to Options.Answer, if it is set.
func (s *Server) answerInvalid(r *http.Request, head []byte) {
	if s.opts.Answer == nil {
		return
	}
	host := r.URL.Hostname()
	if host == "" {
		host = r.Host
	}
	s.opts.Answer(Request{Host: host, Method: r.Method, URL: r.RequestURI, Data: head})
}

// httpRequest matches the start of an HTTP request.
var httpRequest = regexp.MustCompile(`^[A-Z]{2,}( |$)`)

// answerTunnel serves a tunnel without connecting to its host. It decrypts TLS,
// and answers HTTP requests. It reads other data, and sends nothing.
func (s *Server) answerTunnel(w http.ResponseWriter, d *Decision, t target) {
	tunnel := Request{Host: t.host, Port: t.port, Method: http.MethodConnect}
	s.opts.Answer(tunnel)
	client, err := establish(w)
	if err != nil {
		d.Reason = "script disconnected"
		s.log(d)
		return
	}
	defer client.Close()
	client.SetReadDeadline(time.Now().Add(min(headerTimeout, s.idle)))
	name, isTLS, read, _ := clientHello(client)
	client.SetReadDeadline(time.Time{})
	client.r = io.MultiReader(bytes.NewReader(read), client.r)
	switch {
	case isTLS:
		if other, err := NormalizeHost(name); err == nil && other != t.host {
			s.opts.Answer(Request{Host: other, Port: t.port, Method: http.MethodConnect})
		}
		s.intercept(client, d, t)
	case httpRequest.Match(read):
		s.serveConn(client, t)
	default:
		tunnel.Data, _ = io.ReadAll(io.LimitReader(client, maxAnswered))
		d.Bytes = int64(len(tunnel.Data))
		s.opts.Answer(tunnel)
		s.log(d)
	}
}
