package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

const legacyVersion = "2025-11-25" // last version that starts with initialize

// maxEras is the maximum number of servers whose protocol era is remembered.
const maxEras = 4096

// attempt describes a handshake to try.
type attempt struct {
	era     string        // [Legacy] sends initialize at once; otherwise server/discover is sent first
	timeout time.Duration // timeout of server/discover; 0 means the deadline of ctx
}

// probeOutcome is the outcome of a probe with server/discover.
type probeOutcome int

const (
	probePending      probeOutcome = iota // server/discover was not sent, or is pending
	probeAnswered                         // the server responded or rejected the request
	probeTimedOut                         // no response before the timeout
	probeDisconnected                     // the connection ended without a response
)

// firstAttempt returns an attempt for the requested era or, failing that, the
// known era. If both are "", it returns a probe with the given timeout.
func firstAttempt(requested, known string, timeout time.Duration) attempt {
	switch {
	case requested != "":
		return attempt{era: requested}
	case known != "":
		return attempt{era: known}
	}
	return attempt{timeout: timeout}
}

// nextAttempt returns the attempt to make after attempt p has failed, or false
// if there is none. It ignores the probe's error code: if the server responded
// at all, the SDK has already tried initialize on the same connection.
func nextAttempt(p attempt, typ, requested string, l *link, err error) (attempt, bool) {
	if requested != "" || l == nil {
		return attempt{}, false
	}
	var wire *jsonrpc.Error
	code := 0
	if errors.As(err, &wire) && !isSDKError(wire) {
		code = int(wire.Code)
	}
	switch {
	case p.era == Legacy && code == mcp.CodeUnsupportedProtocolVersion:
		// The server is modern but too slow for the probe.
		return attempt{era: Modern}, true
	case p.era != "":
		return attempt{}, false
	case l.probeOutcome() == probeTimedOut:
		return attempt{era: Legacy}, true
	case l.probeOutcome() == probeDisconnected && l.isStarted():
		// Some servers exit on an unknown first message.
		return attempt{era: Legacy}, true
	case l.probeOutcome() == probeAnswered && typ == Stdio && code == 0 && l.isLost():
		return attempt{era: Legacy}, true
	}
	return attempt{}, false
}

func sessionEra(s *mcp.ClientSession) string {
	if r := s.InitializeResult(); r != nil && r.ProtocolVersion >= rpcmessage.ModernVersion {
		return Modern
	}
	return Legacy
}

// probeTimeout returns the timeout of a probe, at most half of the time left
// until the deadline of ctx.
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

// findEra returns the protocol era of the last connection to a server, or "" if it
// is unknown.
func (d *Dialer) findEra(key string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.eras[key]
}

func (d *Dialer) rememberEra(key, era string) {
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
