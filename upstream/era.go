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
	legacyVersion = "2025-11-25" // the last one that begins with initialize
)

// maxEras bounds the verdicts that are kept.
const maxEras = 4096

// attempt is one way to connect.
type attempt struct {
	era   string        // [Legacy]: initialize at once; else server/discover first
	bound time.Duration // how long an answer to server/discover may take; 0 is as long as ctx
}

// probeEnd is how a probe ended.
type probeEnd int

const (
	unasked  probeEnd = iota // server/discover was not sent, or is on its way
	answered                 // by whatever: it is alive
	silent                   // not within the bound
	gone                     // the connection ended without an answer
)

// firstTry says how to begin: as told, as last time, or with a bounded probe.
func firstTry(told, known string, bound time.Duration) attempt {
	switch {
	case told != "":
		return attempt{era: told}
	case known != "":
		return attempt{era: known}
	}
	return attempt{bound: bound}
}

// nextTry says how to go on after a failure, if at all. It never keys on one
// error code of the probe: whatever answered has been asked to initialize on the
// same connection already, by the SDK.
func nextTry(p attempt, typ, told string, l *link, err error) (attempt, bool) {
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
		// A modern server, too slow for the probe: it has all the time now.
		return attempt{era: Modern}, true
	case p.era != "":
		return attempt{}, false
	case l.probe() == silent:
		return attempt{era: Legacy}, true
	case l.probe() == gone && l.started():
		// Some servers end on a first message that they do not know.
		return attempt{era: Legacy}, true
	case l.probe() == answered && typ == Stdio && code == 0 && l.lost():
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

// probe is the bound of a probe, within the time that is left.
func (d *Dialer) probe(ctx context.Context) time.Duration {
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
