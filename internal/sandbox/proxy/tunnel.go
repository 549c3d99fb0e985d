package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxHello is the maximum number of bytes that a script may send before its TLS
// ClientHello is complete.
const maxHello = 128 << 10

// tunnel serves an allowed CONNECT request. On port 80, or if a secret must be
// added, it serves the HTTP requests in the tunnel itself. Otherwise it checks
// the server name and copies bytes in both directions.
func (s *Server) tunnel(w http.ResponseWriter, r *http.Request, d *Decision, t target) {
	if s.opts.Answer != nil {
		s.answerTunnel(w, d, t)
		return
	}
	reads := s.intercepts(t) || t.port == 80
	var up *conn
	if !reads {
		// Connect before responding, so that the response can contain the
		// error.
		var err error
		if up, err = s.dial(r.Context(), t); err != nil {
			s.fail(w, r, d, t, err)
			s.log(d)
			return
		}
		defer up.Close()
	}
	client, err := establish(w)
	if err != nil {
		d.Reason = "script disconnected"
		s.log(d)
		return
	}
	var down sync.WaitGroup
	defer down.Wait() // waits until both ends are closed
	defer client.Close()
	if up != nil {
		defer up.Close()
	}
	// The host may send data first, unless the script must start with TLS.
	if up != nil && t.port != 443 {
		down.Go(func() { transfer(client, up) })
	}
	client.SetReadDeadline(time.Now().Add(min(headerTimeout, s.idle)))
	name, isTLS, read, err := clientHello(client)
	client.SetReadDeadline(time.Time{})
	client.r = io.MultiReader(bytes.NewReader(read), client.r)
	if fault := s.inspect(t, name, isTLS, err); fault != "" {
		d.Allowed, d.Reason = false, fault
		s.log(d)
		return
	}
	switch {
	case isTLS && s.intercepts(t):
		s.intercept(client, d, t)
		return
	case reads && !isTLS:
		s.serveConn(client, t) // each request is logged as a decision
		return
	case up == nil: // TLS on port 80
		if up, err = s.dial(s.ctx, t); err != nil {
			d.Allowed, d.Reason = false, "not reached"
			s.log(d)
			return
		}
		defer up.Close()
		down.Go(func() { transfer(client, up) })
	case t.port == 443:
		down.Go(func() { transfer(client, up) })
	}
	transfer(up, client)
	down.Wait()
	d.Bytes = up.passed.Load()
	if d.Allowed && !s.spendQuota(0) {
		d.Reason = errQuota.Error()
	}
	s.log(d)
}

// establish hijacks the connection from net/http and tells the client that the
// tunnel is established.
func establish(w http.ResponseWriter) (*replayConn, error) {
	raw, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	c := raw.(*conn)
	early, _ := buf.Reader.Peek(buf.Reader.Buffered())
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		c.Close()
		return nil, err
	}
	return &replayConn{conn: c, r: io.MultiReader(bytes.NewReader(bytes.Clone(early)), c)}, nil
}

// inspect returns the reason why the first bytes of a tunnel are not allowed,
// or "" if they are allowed.
func (s *Server) inspect(t target, name string, isTLS bool, err error) string {
	switch {
	case err != nil:
		return "the tunnel does not start with a valid TLS handshake"
	case !isTLS && t.port == 443:
		return "traffic on port 443 is not TLS"
	case !isTLS:
		return ""
	case name == "" && isIP(t.host):
		return ""
	case name == "":
		return "the TLS handshake names no server"
	}
	// With Encrypted Client Hello, this is the outer name.
	host, err := NormalizeHost(name)
	if err != nil {
		return "the TLS handshake names no valid server"
	}
	if host != t.host {
		other := target{host: host, port: t.port}
		s.recordDenied(other.String())
		return "the TLS handshake names " + host
	}
	return ""
}

// clientHello reads from a connection until crypto/tls has parsed a
// ClientHello. It sends nothing. It returns the server name and all bytes read
// so far. If err is nil and isTLS is false, the data is not TLS.
func clientHello(c net.Conn) (name string, isTLS bool, read []byte, err error) {
	rec := &recorder{Conn: c}
	err = tls.Server(rec, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name, isTLS = h.ServerName, true
			return nil, errors.New("handshake stopped after the ClientHello")
		},
	}).Handshake()
	var header tls.RecordHeaderError
	if isTLS || errors.As(err, &header) {
		err = nil
	}
	return name, isTLS, rec.read, err
}

// recorder is a connection that records the data read from it and discards the
// data written to it.
type recorder struct {
	net.Conn
	read []byte
}

func (r *recorder) Read(p []byte) (int, error) {
	if len(r.read) >= maxHello {
		return 0, errors.New("ClientHello too large")
	}
	n, err := r.Conn.Read(p)
	r.read = append(r.read, p[:n]...)
	return n, err
}

func (r *recorder) Write(p []byte) (int, error)      { return len(p), nil }
func (r *recorder) Close() error                     { return nil }
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

// transfer copies data in one direction. At EOF it closes that direction; an
// error closes both.
func transfer(to, from interface {
	net.Conn
	CloseWrite() error
}) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	to.CloseWrite()
}

// intercept terminates the script's TLS connection on behalf of the host.
func (s *Server) intercept(client net.Conn, d *Decision, t target) {
	leaf, err := s.ca.certificate(t.host)
	if err != nil {
		d.Allowed, d.Reason = false, "cannot create a certificate"
		s.log(d)
		return
	}
	client.SetDeadline(time.Now().Add(min(headerTimeout, s.idle)))
	c := tls.Server(client, &tls.Config{
		Certificates: []tls.Certificate{*leaf},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	})
	if err := c.HandshakeContext(s.ctx); err != nil {
		d.Reason = "the script did not complete the TLS handshake; it may not trust the sandbox's CA"
		s.log(d)
		return
	}
	client.SetDeadline(time.Time{})
	t.tls = true
	s.serveConn(c, t)
}

// serveConn serves a connection until it is closed. All requests must be for
// target t.
func (s *Server) serveConn(c net.Conn, t target) {
	inner := &innerConn{Conn: c, target: t, done: make(chan struct{})}
	s.inner.Serve(&singleListener{innerConn: inner})
}
