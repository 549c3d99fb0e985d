package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/policy"
)

// SkillReview asks the user to approve a version of a skill before it is loaded
// or run.
type SkillReview struct {
	// Text describes everything that the skill provides and requests.
	Text string
	// Digest identifies what an approval permits: the version of the skill and of
	// all that it needs, and the permissions. An answer counts only if the digest
	// is the same as when the user was asked.
	Digest policy.Digest
	// Approve stores the approval. scope is policy.Once or policy.Always. expires is
	// the [policy.Grant.Expires], and presence the [policy.Grant.Presence].
	Approve func(ctx context.Context, scope policy.Scope, expires time.Time, presence string) error
}

// maxDeclined is the maximum number of declined versions that a server remembers.
const maxDeclined = 1000

// approveSkill asks the user to approve the skill that a call loads or runs, if
// it is not approved and the client can ask. It applies the answer. It returns a
// result to send instead of making the call, or nil.
func (s *Server) approveSkill(ctx context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	name := s.calledSkill(req.Params)
	if name == "" || s.opts.ReviewSkill == nil || !canElicit(req) {
		return nil
	}
	r, err := s.opts.ReviewSkill(ctx, name)
	if err != nil {
		s.log.Warn("cannot ask the user about a skill", "skill", name, "error", err)
	}
	if err != nil || r == nil {
		return nil // the call reports what is missing
	}
	p := req.Params
	a := s.approvals.readAnswer(ctx, p.Name, p.Arguments, p.RequestState, p.InputResponses)
	if a.subject != r.Digest {
		a = answer{} // the skill changed after the question
	}
	switch {
	case a.verdict == approved:
		scope, expires := cmp.Or(a.keep, policy.Once), time.Time{}
		if scope == policy.ForSession { // connections have no session for skills
			scope, expires = policy.Always, time.Now().Add(24*time.Hour)
		}
		if err := r.Approve(ctx, scope, expires, presenceOf(req)); err != nil {
			s.log.Warn("could not store an approval", "skill", name, "error", err)
		}
	case a.verdict == denied:
		s.approvals.decline(r.Digest)
	case a.verdict == notPrompted && !s.approvals.wasDeclined(r.Digest):
		schema := decisionSchema("once: for the next run; session: for one day; always: this version", "once", "session", "always")
		return &mcp.CallToolResult{
			InputRequests: mcp.InputRequestMap{questionKey: &mcp.ElicitParams{Message: r.Text, RequestedSchema: schema}},
			RequestState:  s.approvals.encode(p.Name, p.Arguments, &state{Subject: r.Digest}),
		}
	}
	return nil
}

// calledSkill returns the name of the skill that a call loads or runs, or "".
func (s *Server) calledSkill(p *mcp.CallToolParamsRaw) string {
	var in struct{ Name, Skill string }
	if s.opts.Compat != "" || json.Unmarshal(p.Arguments, &in) != nil {
		return ""
	}
	switch p.Name {
	case toolname.LoadSkill:
		return in.Name
	case toolname.RunSkillScript:
		return in.Skill
	}
	return ""
}

// decline records that the user declined a version of a skill, so that the user
// is not asked about that version again.
func (a *approvals) decline(version policy.Digest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.declined) < maxDeclined {
		a.declined[version] = true
	}
}

func (a *approvals) wasDeclined(version policy.Digest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.declined[version]
}
