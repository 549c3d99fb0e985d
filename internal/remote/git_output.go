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

// maxOutput is the maximum number of bytes of git's messages to keep, from the
// end.
const maxOutput = 4 << 10

// gitOutput collects the messages of a command and reports its progress.
type gitOutput struct {
	tell func(Progress)
	line []byte // the incomplete line
	data []byte
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

// received matches git's progress line for received objects.
var received = lazyregexp.New(`^(?:Receiving|Unpacking) objects: +\d+% \((\d+)/(\d+)\)`)

// endLine handles a complete line.
func (s *gitOutput) endLine() {
	line := s.line
	s.line = s.line[:0]
	if m := received().FindSubmatch(line); m != nil {
		done, _ := strconv.ParseInt(string(m[1]), 10, 64)
		total, _ := strconv.ParseInt(string(m[2]), 10, 64)
		s.tell(Progress{What: "receiving objects", Done: done, Total: total})
		return
	}
	if len(line) == 0 || bytes.Contains(line, []byte("% (")) { // progress of the other side
		return
	}
	s.data = append(append(s.data, line...), '\n')
	if n := len(s.data) - maxOutput; n > 0 {
		s.data = append(s.data[:0], s.data[n:]...)
	}
}

// failed returns the error of a command that ended with err.
func (s *gitOutput) failed(command string, err error) error {
	s.endLine()
	return &gitError{command: command, messages: string(s.data), err: err}
}

// gitError contains the messages of a git command that failed.
type gitError struct {
	command  string
	messages string // unchanged
	err      error  // how the process ended
}

func (e *gitError) Unwrap() error { return e.err }

func (e *gitError) Error() string {
	first, fatal := "", ""
	for line := range strings.Lines(e.messages) {
		line = printable.OneLine(queries().ReplaceAllString(strings.ToValidUTF8(line, "�"), "$1"))
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

// queries matches parts of a URL that may be secret: the query, and the user
// before a host.
var queries = lazyregexp.New(`\?[^\s"'<>]+|(//)[^\s/@'"]+@`)

// gitWhy is the reason of a git failure, if it can be handled.
type gitWhy int

const (
	unknown       gitWhy = iota
	movedAway            // a redirect, which git does not follow
	unauthorized         // 401
	forbidden            // 403, or ssh accepts no key
	notThere             // 404, or no such path
	noRef                // the branch or tag no longer exists
	notAdvertised        // the server does not serve commits by name
	dumb                 // not a git server, but its files
	broken               // the objects break git's rules
	hostKey              // ssh does not know the host
	noMemory             // the memory limit was reached
)

// whys maps messages of git and ssh to reasons. Git has no other way to report
// them.
var whys = []struct {
	words string
	why   gitWhy
}{
	{"requested URL returned error: 30", movedAway},
	{"unable to update url base from redirection", movedAway},
	{"could not read Username", unauthorized},
	{"could not read Password", unauthorized},
	{"Authentication failed", unauthorized},
	{"requested URL returned error: 401", unauthorized},
	{"requested URL returned error: 403", forbidden},
	{"Permission denied (", forbidden},
	{"Host key verification failed", hostKey},
	{"requested URL returned error: 404", notThere},
	{"does not appear to be a git repository", notThere},
	{"Repository not found", notThere},
	{"couldn't find remote ref", noRef},
	{"not our ref", notAdvertised},
	{"unadvertised object", notAdvertised},
	{"dumb http transport does not support shallow", dumb},
	{"ut of memory", noMemory},
	{"Cannot allocate memory", noMemory},
	{"fsck error", broken},
}

// notFoundLine matches git's message for a missing repository.
var notFoundLine = lazyregexp.New(`(?m)^fatal: repository '.*' not found`)

// whyOf returns the reason of a git failure from its messages or from the
// server's refusal.
func whyOf(err error) gitWhy {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return map[int]gitWhy{http.StatusUnauthorized: unauthorized, http.StatusForbidden: forbidden, http.StatusNotFound: notThere}[e.Code]
	}
	e, ok := errors.AsType[*gitError](err)
	if !ok {
		return unknown
	}
	if notFoundLine().MatchString(e.messages) {
		return notThere
	}
	for _, w := range whys {
		if strings.Contains(e.messages, w.words) {
			return w.why
		}
	}
	return unknown
}
