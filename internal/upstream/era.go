package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	modernVersion = "2026-07-28"
	legacyVersion = "2025-11-25" // last version that starts with initialize
)

// maxEras limits the remembered eras.
const maxEras = 4096

// attempt is one way to connect.
type attempt struct {
	era   string        // [Legacy]: initialize at once; else server/discover first
	bound time.Duration // timeout of server/discover; 0 means that of ctx
}

// probeEnd is the outcome of a probe.
type probeEnd int

const (
	unasked  probeEnd = iota // server/discover was not sent, or is pending
	answered                 // the server is alive
	silent                   // no answer before the timeout
	gone                     // the connection ended without an answer
)

// firstAttempt uses the requested era, else the known era, else a probe with a
// timeout.
func firstAttempt(told, known string, bound time.Duration) attempt {
	switch {
	case told != "":
		return attempt{era: told}
	case known != "":
		return attempt{era: known}
	}
	return attempt{bound: bound}
}

// nextAttempt returns the attempt after a failed one, if any. It does not
// depend on error codes of the probe: after any answer the SDK has already
// tried initialize on the same connection.
func nextAttempt(p attempt, typ, told string, l *link, err error) (attempt, bool) {
	if told != "" || l == nil {
		return attempt{}, false
	}
	var wire *jsonrpc.Error
	code := 0
	if errors.As(err, &wire) && !internalCode(wire) {
		code = int(wire.Code)
	}
	switch {
	case p.era == Legacy && code == mcp.CodeUnsupportedProtocolVersion:
		// A modern server that is too slow for the probe.
		return attempt{era: Modern}, true
	case p.era != "":
		return attempt{}, false
	case l.probe() == silent:
		return attempt{era: Legacy}, true
	case l.probe() == gone && l.isStarted():
		// Some servers exit on an unknown first message.
		return attempt{era: Legacy}, true
	case l.probe() == answered && typ == Stdio && code == 0 && l.isLost():
		return attempt{era: Legacy}, true
	}
	return attempt{}, false
}

func eraOf(s *mcp.ClientSession) string {
	if r := s.InitializeResult(); r != nil && r.ProtocolVersion >= modernVersion {
		return Modern
	}
	return Legacy
}

// probeTimeout returns the timeout of a probe, within the remaining time.
func (d *Dialer) probeTimeout(ctx context.Context) time.Duration {
	b := d.Probe
	if b <= 0 {
		b = DefaultProbeTimeout
	}
	if t, ok := ctx.Deadline(); ok {
		b = min(b, time.Until(t)/2)
	}
	return b
}

func (d *Dialer) era(key string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.eras[key]
}

func (d *Dialer) remember(key, era string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if era == "" {
		delete(d.eras, key)
		return
	}
	if d.eras == nil || len(d.eras) >= maxEras {
		d.eras = map[string]string{}
	}
	d.eras[key] = era
}
