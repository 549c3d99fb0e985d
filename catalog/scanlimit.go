package catalog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// stop describes a limit that a scan reached, and the path at which it was
// reached.
type stop struct {
	limit  stopLimit
	at     string
	shared bool // whether all sources in the project share the limit
}

type stopLimit int

const (
	stopDirs stopLimit = iota
	stopNames
	stopTime
)

// stopAt records that the scan reached a limit at a path.
func (s *scan) stopAt(limit stopLimit, at string) {
	if !s.stopped(limit) {
		s.stops = append(s.stops, stop{limit, at, s.isShared(limit)})
	}
}

// isShared reports whether all sources in projects share the limit that the
// scan just reached.
func (s *scan) isShared(limit stopLimit) bool {
	switch {
	case s.shared == nil:
		return false
	case limit == stopDirs:
		return s.dirs < s.opts.MaxDirs
	case limit == stopNames:
		return s.names <= s.opts.MaxEntries
	}
	return s.deadline.Equal(s.shared.end())
}

func (s *scan) stopped(limit stopLimit) bool {
	return slices.ContainsFunc(s.stops, func(x stop) bool { return x.limit == limit })
}

// outOfTime reports whether the time limit was reached. The scan must then stop
// before the file with the given name in d.
func (s *scan) outOfTime(d *dirfd, name string) bool {
	if len(s.stops) > 0 && s.stopped(stopTime) {
		return true
	}
	if !time.Now().After(s.deadline) {
		return false
	}
	s.stopAt(stopTime, d.path+"/"+name)
	return true
}

// maxOutside is the maximum number of reported paths that lead outside the
// boundary. A hostile project may contain any number.
const maxOutside = 20

// reportUnsearched reports a directory that cannot be searched.
func (s *scan) reportUnsearched(at string, err error) {
	if _, ok := errors.AsType[*outsideError](err); ok {
		if s.outside++; s.outside > maxOutside {
			return
		}
	}
	s.problem(at, unreadable(err))
}

// reportLimits adds a problem for each limit that the scan of root reached.
func (s *scan) reportLimits(root string) {
	for _, x := range s.stops {
		limits := s.opts
		if x.shared {
			limits = &s.shared.limits
		}
		s.problem(root, x.diagnostic(limits))
	}
	if more := s.outside - maxOutside; more > 0 {
		s.problem(root, skill.Diagnostic{Severity: skill.Warning, Code: "outside-project",
			Message: fmt.Sprintf("not searched: %d more symlinks that lead out of the project %s", more, s.opts.Within),
			Fix:     "copy the skills into the project, or add their directories to skills.dirs in your own configuration"})
	}
	if s.tooDeep > 0 {
		s.problem(s.firstDeep, depthLimit(s.opts.MaxDepth, fmt.Sprintf("below this one and %d others", s.tooDeep-1)))
	}
}

// diagnostic returns a diagnostic that says where and why the scan stopped.
func (x stop) diagnostic(o *DirOptions) skill.Diagnostic {
	d := skill.Diagnostic{Severity: skill.Warning, Fix: "point a source at a smaller directory"}
	all, search := "", "the search"
	if x.shared {
		all, search = " in the skill directories of the project", "the search of all skill directories of the project"
	}
	switch x.limit {
	case stopDirs:
		d.Code, d.Message = "directory-limit", fmt.Sprintf("more than %d directories%s", o.MaxDirs, all)
	case stopNames:
		d.Code, d.Message = "entry-limit", fmt.Sprintf("more than %d files and directories%s", o.MaxEntries, all)
	case stopTime:
		d.Code, d.Message = "time-limit", fmt.Sprintf("%s takes more than %v", search, o.MaxTime)
	}
	d.Message += "; the rest is not searched, from " + x.at
	return d
}

func depthLimit(depth int, where string) skill.Diagnostic {
	return skill.Diagnostic{Severity: skill.Info, Code: "depth-limit",
		Message: fmt.Sprintf("directories more than %d levels deep are not searched: %s", depth, where),
		Fix:     "point a source at a deeper directory, or raise skills.depth"}
}
