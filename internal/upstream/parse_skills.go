package upstream

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/configfile"
)

// SkillLimits bounds the listing of the skills of a server. Zero fields mean the
// defaults.
type SkillLimits struct {
	Pages  int
	Skills int
	Bytes  int // of the listing as JSON
	Time   time.Duration
}

// The bounds of [SkillLimits]. The entry of a skill with 512 files, which each host
// must support, can have 4 MiB of JSON.
const (
	minSkillMegabytes = 4
	maxSkillMegabytes = 64
	maxSkillPages     = 10_000
	maxSkillCount     = 100_000
	minSkillTime      = time.Second
	maxSkillTime      = 10 * time.Minute
)

// parseSkillLimits parses the value of skillLimits. A value outside of the bounds
// is replaced with the bound.
func (e *serverEntry) parseSkillLimits(f configfile.Field) SkillLimits {
	var out SkillLimits
	if f.Value.Kind != configfile.Map {
		e.warn("server-skill-limits", f.Value, f.Key+" is not a mapping and is ignored", "write for example {skills: 500, time: 20s}")
		return out
	}
	for _, l := range f.Value.Fields {
		switch canonicalKey(l.Key) {
		case "pages":
			out.Pages = e.parseLimit(l, 1, maxSkillPages)
		case "skills":
			out.Skills = e.parseLimit(l, 1, maxSkillCount)
		case "megabytes":
			out.Bytes = e.parseLimit(l, minSkillMegabytes, maxSkillMegabytes) << 20
		case "time":
			out.Time = e.parseLimitTime(l)
		default:
			e.warn("server-skill-limits", keyNode(l), "unknown limit "+quoteText(l.Key)+" of skills is ignored", "write pages, skills, megabytes or time")
		}
	}
	return out
}

func (e *serverEntry) parseLimit(f configfile.Field, least, most int) int {
	n, err := strconv.Atoi(scalarText(f.Value))
	if err != nil {
		e.warn("server-skill-limits", f.Value, fmt.Sprintf("%s is not a number and is ignored", f.Key), fmt.Sprintf("write a number from %d to %d", least, most))
		return 0
	}
	bounded := min(max(n, least), most)
	if bounded != n {
		e.warn("server-skill-limits", f.Value, fmt.Sprintf("%s is not from %d to %d; %d is used", f.Key, least, most, bounded), fmt.Sprintf("write a number from %d to %d", least, most))
	}
	return bounded
}

func (e *serverEntry) parseLimitTime(f configfile.Field) time.Duration {
	text := strings.TrimSpace(scalarText(f.Value))
	if _, err := strconv.Atoi(text); err == nil {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		e.warn("server-skill-limits", f.Value, f.Key+" is not a duration and is ignored", "write for example 20s")
		return 0
	}
	bounded := min(max(d, minSkillTime), maxSkillTime)
	if bounded != d {
		e.warn("server-skill-limits", f.Value, fmt.Sprintf("%s is not from %v to %v; %v is used", f.Key, minSkillTime, maxSkillTime, bounded), "write for example 20s")
	}
	return bounded
}
