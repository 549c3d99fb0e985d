package remote

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/printable"
)

// maxOutput is the maximum number of bytes of git's messages to store. Only the
// last bytes are stored.
const maxOutput = 4 << 10

// gitOutput collects the messages of a git command and reports its progress to
// the client.
type gitOutput struct {
	progress func(Progress)
	line     []byte // the incomplete line
	messages []byte
}

func (s *gitOutput) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexAny(rest, "\r\n")
		if i < 0 {
			s.line = append(s.line, rest[:min(len(rest), maxOutput-min(maxOutput, len(s.line)))]...)
			break
		}
		s.line = append(s.line, rest[:min(i, maxOutput-min(maxOutput, len(s.line)))]...)
		s.endLine()
		rest = rest[i+1:]
	}
	return len(p), nil
}

// progressLine matches git's progress message for received objects.
var progressLine = lazyregexp.New(`^(?:Receiving|Unpacking) objects: +\d+% \((\d+)/(\d+)\)`)

// endLine handles a complete line: it reports progress, or stores the message.
func (s *gitOutput) endLine() {
	line := s.line
	s.line = s.line[:0]
	if m := progressLine.FindSubmatch(line); m != nil {
		done, _ := strconv.ParseInt(string(m[1]), 10, 64)
		total, _ := strconv.ParseInt(string(m[2]), 10, 64)
		s.progress(Progress{What: "receiving objects", Done: done, Total: total})
		return
	}
	if len(line) == 0 || bytes.Contains(line, []byte("% (")) { // progress of the server
		return
	}
	s.messages = append(append(s.messages, line...), '\n')
	if n := len(s.messages) - maxOutput; n > 0 {
		s.messages = append(s.messages[:0], s.messages[n:]...)
	}
}

// commandError returns err, the error of a failed command, with the collected
// messages.
func (s *gitOutput) commandError(command string, err error) error {
	s.endLine()
	return &gitError{command: command, messages: string(s.messages), err: err}
}

// gitError is the error of a failed git command, including its messages.
type gitError struct {
	command string
	// messages is the output of git.
	messages string
	err      error // exit status of the process
}

func (e *gitError) Unwrap() error { return e.err }

func (e *gitError) Error() string {
	first, fatal := "", ""
	for line := range strings.Lines(e.messages) {
		line = printable.OneLine(secretURLParts.ReplaceAllString(strings.ToValidUTF8(line, "�"), "$1"))
		word, is := strings.CutPrefix(line, "fatal: ")
		if first == "" {
			first = line
		}
		if is && fatal == "" && !strings.HasPrefix(word, "Could not read from remote") { // ssh printed a better message
			fatal = word
		}
	}
	text := cmp.Or(fatal, first, e.err.Error())
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return fmt.Sprintf("git %s: %s", e.command, text)
}

// secretURLParts matches the parts of a URL that may contain a secret: the
// query, and the user before a host.
var secretURLParts = lazyregexp.New(`\?[^\s"'<>]+|(//)[^\s/@'"]+@`)

// failureReason classifies git failures that this package handles.
type failureReason int

const (
	unknownFailure failureReason = iota
	// redirected means that git was redirected, which it does not follow.
	redirected
	unauthorized  // 401
	forbidden     // 403, or ssh accepts no key
	missing       // 404, or no such path
	missingRef    // the branch or tag no longer exists
	notAdvertised // the server does not serve commits by name
	// dumbServer means that the server only serves repository files.
	dumbServer
	// invalidObjects means that objects violate git's format rules.
	invalidObjects
	// unknownHostKey means that ssh does not know the host's key.
	unknownHostKey
	// outOfMemory means that the memory limit was exceeded.
	outOfMemory
)

// failureMessages maps messages of git and ssh to reasons, because there is no
// other way to distinguish failures.
var failureMessages = []struct {
	words string
	why   failureReason
}{
	{"requested URL returned error: 30", redirected},
	{"unable to update url base from redirection", redirected},
	{"could not read Username", unauthorized},
	{"could not read Password", unauthorized},
	{"Authentication failed", unauthorized},
	{"requested URL returned error: 401", unauthorized},
	{"requested URL returned error: 403", forbidden},
	{"Permission denied (", forbidden},
	{"Host key verification failed", unknownHostKey},
	{"requested URL returned error: 404", missing},
	{"does not appear to be a git repository", missing},
	{"Repository not found", missing},
	{"couldn't find remote ref", missingRef},
	{"not our ref", notAdvertised},
	{"unadvertised object", notAdvertised},
	{"dumb http transport does not support shallow", dumbServer},
	{"ut of memory", outOfMemory},
	{"Cannot allocate memory", outOfMemory},
	{"fsck error", invalidObjects},
}

// notFoundLine matches git's message for a missing repository.
var notFoundLine = lazyregexp.New(`(?m)^fatal: repository '.*' not found`)

// gitFailureReason returns the reason for a git failure, based on git's
// messages or an HTTP status.
func gitFailureReason(err error) failureReason {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return map[int]failureReason{http.StatusUnauthorized: unauthorized, http.StatusForbidden: forbidden, http.StatusNotFound: missing}[e.Code]
	}
	e, ok := errors.AsType[*gitError](err)
	if !ok {
		return unknownFailure
	}
	if notFoundLine.MatchString(e.messages) {
		return missing
	}
	for _, w := range failureMessages {
		if strings.Contains(e.messages, w.words) {
			return w.why
		}
	}
	return unknownFailure
}
