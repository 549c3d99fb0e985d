package remote

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/pattern"
	"github.com/loadout-dev/loadout/skill"
)

// maxSaid is how much of what git prints for people is kept: the end of it.
const maxSaid = 4 << 10

// gitSaid takes what a command prints for people, and tells its progress.
type gitSaid struct {
	tell func(Progress)
	line []byte // that is not at its end
	kept []byte
}

func (s *gitSaid) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexAny(rest, "\r\n")
		if i < 0 {
			s.line = append(s.line, rest[:min(len(rest), maxSaid-min(maxSaid, len(s.line)))]...)
			break
		}
		s.line = append(s.line, rest[:min(i, maxSaid-min(maxSaid, len(s.line)))]...)
		s.ended()
		rest = rest[i+1:]
	}
	return len(p), nil
}

// received is git's line about what it receives.
var received = pattern.New(`^(?:Receiving|Unpacking) objects: +\d+% \((\d+)/(\d+)\)`)

// ended looks at a line that is complete.
func (s *gitSaid) ended() {
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
	s.kept = append(append(s.kept, line...), '\n')
	if n := len(s.kept) - maxSaid; n > 0 {
		s.kept = append(s.kept[:0], s.kept[n:]...)
	}
}

// failed is the error of a command that ended with err.
func (s *gitSaid) failed(command string, err error) error {
	s.ended()
	return &gitError{command: command, said: string(s.kept), err: err}
}

// gitError is what git said when it failed.
type gitError struct {
	command string
	said    string // as it came
	err     error  // how the process ended
}

func (e *gitError) Unwrap() error { return e.err }

func (e *gitError) Error() string {
	first, fatal := "", ""
	for line := range strings.Lines(e.said) {
		line = skill.OneLine(queries().ReplaceAllString(strings.ToValidUTF8(line, "�"), "$1"))
		word, is := strings.CutPrefix(line, "fatal: ")
		if first == "" {
			first = line
		}
		if is && fatal == "" && !strings.HasPrefix(word, "Could not read from remote") { // which ssh has said better
			fatal = word
		}
	}
	text := cmp.Or(fatal, first, e.err.Error())
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return fmt.Sprintf("git %s: %s", e.command, text)
}

// queries are what may be secret in a URL: the query, and the user before a host.
var queries = pattern.New(`\?[^\s"'<>]+|(//)[^\s/@'"]+@`)

// gitWhy is why git failed, as far as something can be done about it.
type gitWhy int

const (
	unknown       gitWhy = iota
	movedAway            // a redirect, which git does not follow
	unauthorized         // 401
	forbidden            // 403, or ssh takes no key
	notThere             // 404, or no such path
	noRef                // no such branch or tag any more
	notAdvertised        // no commit by its name
	dumb                 // no server of git, but its files
	broken               // what came breaks git's rules
	hostKey              // ssh does not know the host
	noMemory             // it reached the bound of its memory
)

// whys are the words of git, and of ssh, that tell. Git has no other way to say it.
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

// notFoundLine is git's own word about a repository that is not there.
var notFoundLine = pattern.New(`(?m)^fatal: repository '.*' not found`)

// whyOf tells why git failed by what it said, or what a server refuses.
func whyOf(err error) gitWhy {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return map[int]gitWhy{http.StatusUnauthorized: unauthorized, http.StatusForbidden: forbidden, http.StatusNotFound: notThere}[e.Code]
	}
	e, ok := errors.AsType[*gitError](err)
	if !ok {
		return unknown
	}
	if notFoundLine().MatchString(e.said) {
		return notThere
	}
	for _, w := range whys {
		if strings.Contains(e.said, w.words) {
			return w.why
		}
	}
	return unknown
}
