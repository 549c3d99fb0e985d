package detonation

import (
	"net/url"
	"slices"
	"strings"
)

const (
	// shimDir is the first directory of PATH, relative to the home directory.
	shimDir = ".local/bin"
	// traceFile is the file in the home directory to which shims write.
	traceFile = ".local/state/trace"
)

// Programs that are replaced by shims, because they reach hosts without a proxy
// or start other programs later.
var (
	networkTools = []string{"dig", "drill", "host", "nc", "ncat", "netcat", "nslookup", "ping", "scp", "sftp", "socat", "ssh", "telnet"}
	schedulers   = []string{"at", "crontab", "launchctl", "systemctl"}
)

// shim records its name, arguments and input. Records end with the character
// RS.
const shim = `#!/bin/sh
{ printf '%s' "${0##*/}"; printf ' %s' "$@"; printf '\n'; [ -t 0 ] || head -c 65536; printf '\036'; } >> "${LOADOUT_WORK:-/work}/` + traceFile + `" 2>/dev/null
`

// addShims adds the shims and an empty trace to a home directory.
func addShims(home memory) {
	for _, name := range slices.Concat(networkTools, schedulers) {
		home[shimDir+"/"+name] = []byte(shim)
	}
	home[nodeFile] = []byte(nodeTrace)
	home[traceFile] = nil
}

// toolCall is the use of a replaced program, or a request of Node.
type toolCall struct {
	program string
	args    string // for Node, the URL and the header
	text    []byte // the whole record
}

// readTrace returns the uses of replaced programs. The trace is untrusted.
func readTrace(trace []byte) []toolCall {
	var out []toolCall
	for record := range strings.SplitSeq(string(trace), "\x1e") {
		line, _, _ := strings.Cut(record, "\n")
		program, args, _ := strings.Cut(line, " ")
		if program == "node" || slices.Contains(networkTools, program) || slices.Contains(schedulers, program) {
			out = append(out, toolCall{program, args, []byte(record)})
		} else if n := len(out); n > 0 { // the input of the program has an RS
			out[n-1].text = append(out[n-1].text, "\x1e"+record...)
		}
		if len(out) == maxRequests {
			break
		}
	}
	return out
}

// schedules reports whether the call makes a program run later.
func (c *toolCall) schedules() bool {
	switch c.program {
	case "systemctl":
		return strings.Contains(c.args, "enable") || strings.Contains(c.args, "start") || strings.Contains(c.args, "link")
	case "launchctl":
		return strings.Contains(c.args, "load") || strings.Contains(c.args, "bootstrap") || strings.Contains(c.args, "submit")
	case "crontab":
		return strings.TrimSpace(c.args) != "-l"
	}
	return slices.Contains(schedulers, c.program)
}

// host returns the host in the arguments, or "".
func (c *toolCall) host() string {
	if target, _, _ := strings.Cut(c.args, " "); c.program == "node" {
		u, err := url.Parse(target)
		if err != nil {
			return ""
		}
		return strings.ToLower(u.Hostname())
	}
	return strings.ToLower(strings.Trim(hostNames.FindString(c.args), "."))
}
