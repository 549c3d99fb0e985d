package execution

import (
	"github.com/loadout-dev/loadout/internal/requestedbounds"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// RequestedBounds returns the bounds that a skill requests, reduced to what the
// operator's limit allows. It also returns the secrets to inject and any
// problems in the request.
func RequestedBounds(s *skill.Skill, limit policy.Bounds) (policy.Bounds, []policy.Injection, []policy.Problem, error) {
	front, err := s.FrontmatterJSON()
	if err != nil {
		return policy.Bounds{}, nil, nil, err
	}
	asked, problems := requestedbounds.Parse(front)
	return reduceBounds(asked, limit), requestedbounds.ParseInjections(front), problems, nil
}

// reduceBounds reduces the requested bounds to what the operator allows.
func reduceBounds(asked, limit policy.Bounds) policy.Bounds {
	// If the operator sets no limit, the sandbox's default limits apply.
	d := prepare.DefaultLimits()
	applyDefaultLimit(&asked.MemoryMB, limit.MemoryMB, int(d.Memory>>20))
	applyDefaultLimit(&asked.Seconds, limit.Seconds, int(d.Wall.Seconds()))
	applyDefaultLimit(&asked.Processes, limit.Processes, nodeProcesses*d.Processes)
	applyDefaultLimit(&asked.DiskMB, limit.DiskMB, int(d.Work>>20))
	return limit.Intersect(asked)
}

func applyDefaultLimit(asked *int, limit, most int) {
	if limit == 0 {
		*asked = min(*asked, most)
	}
}
