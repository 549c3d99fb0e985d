package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// Skills provides the skills of a session. Implementations must be safe for
// concurrent use.
type Skills interface {
	// Fetch resolves a reference and returns the current version of the skill
	// and its dependencies. Each skill follows its dependencies, so the
	// requested skill is last. The error matches [fs.ErrNotExist] if the skill
	// is not found. The session does not modify the skills, so they may be
	// shared.
	Fetch(ctx context.Context, ref string) ([]*Skill, error)
	// Digest returns the current digest of a skill's SKILL.md, in the same form
	// as [Skill].
	Digest(ctx context.Context, id ID) (string, error)
	// Names returns the names of the skills that a model may load. The first 20
	// are listed to the model if it loads a skill that is not found.
	Names() []string
}

// Skill is a skill as sent to a model: its instructions and the names of its
// files.
type Skill struct {
	ID           ID
	Title        string
	Description  string
	Version      string
	Digest       string       // "sha256:" and the hex SHA-256 of SKILL.md
	Instructions string       // unmodified
	Location     string       // path of the skill's directory for the reader of its files
	Files        []skill.File // includes SKILL.md; empty if unknown
	Tokens       int          // estimated number of tokens in the instructions
	Needs        []string     // names of the skills that it depends on
	Problems     []string     // what will not work; part of the text for the model
	// Warning tells a model that the instructions have characters that the user
	// does not see; "" if they have none. In the text for a model, it precedes
	// the instructions.
	Warning string
	// Hidden is set if only the user may load the skill. ArgumentHint
	// describes the arguments that the user can type after its name.
	Hidden       bool
	ArgumentHint string
	// AllowedTools and Model apply while the skill is active. [Skills] omits
	// them if the current version of the skill is not approved.
	AllowedTools []string
	Model        string
	// UsesTools is set if the skill may need MCP servers or a provider of
	// tools. Only the skills of a runtime set it.
	UsesTools bool
}

// distinctTitle returns the skill's title, or "" if it is equal to the name.
func (m *Skill) distinctTitle() string {
	if m.Title == m.ID.Name {
		return ""
	}
	return m.Title
}

// LoadState is the state of a skill after [Session.Load].
type LoadState string

// Load states.
const (
	StateLoaded        LoadState = "loaded"   // active without problems
	StateAlreadyLoaded LoadState = "already"  // already active and unchanged
	StateDegraded      LoadState = "degraded" // active, but with problems
	StateFailed        LoadState = "failed"   // not active
)

// LoadResult is the result of [Session.Load].
type LoadResult struct {
	State        LoadState
	Skill        *Skill   // nil if the load failed; must not be modified
	Text         string   // text for the model
	Tools        []Tool   // available tools of all loaded skills
	Problems     []string // what does not work, or why the load failed
	Dependencies []string // names of the skills loaded as dependencies
}

// LoadOptions configures [Session.Load]. The zero value is for a skill that the
// program loads on its own.
type LoadOptions struct {
	// Retention is how long the skill stays active. It never shortens the
	// current retention, unless Exact is set because the user chose it. Exact
	// also applies to the dependencies loaded for the skill.
	Retention RetentionMode
	Exact     bool
	// ByModel is set if a model requested the load. The load of a hidden skill
	// then fails.
	ByModel bool
	// Direct is set if the caller does not send the result to the model. The
	// text becomes part of the conversation at its event.
	Direct bool
	// Arguments are the user's arguments. They replace the placeholders
	// $ARGUMENTS, $1 and so on in the instructions. If there is no placeholder,
	// they follow the instructions. A direct load fills in placeholders even if
	// there are no arguments.
	Arguments string
	// By is the cause of the load, if neither ByModel nor Direct determines
	// it. Why is the reason, if it is not apparent from the conversation.
	By  Cause
	Why string

	update bool // whether Refresh loads the new version of an active skill
}

// cause returns the cause of the load, or "" if it is unknown.
func (o LoadOptions) cause() Cause {
	switch {
	case o.By != "":
		return o.By
	case o.ByModel:
		return ByModel
	case o.Direct:
		return ByUser
	}
	return ""
}

// retentionOf returns the retention that an active skill has after it is loaded
// again, and whether the user set it.
func (o LoadOptions) retentionOf(main *Skill, a ActiveSkill) (k RetentionMode, set bool) {
	if o.Exact && (a.Skill == main.ID || a.RequiredBy == main.ID.Name) {
		return o.Retention, true
	}
	return longerRetention(o.Retention, a.Retention), false
}

// loadKey identifies calls of [Session.Load] that share a load if they run
// concurrently.
type loadKey struct {
	ref string
	o   LoadOptions
}

// inflightLoad is a load in progress. waiting is the number of callers that
// wait for it. Session.mu guards the fields until done is closed, and taken
// even after that.
type inflightLoad struct {
	cancel  context.CancelFunc
	done    chan struct{}
	waiting int
	decided bool // whether the outcome is final and in the log
	taken   bool // whether a caller has received the text
	result  *LoadResult
	err     error
}

// Load makes a skill and its dependencies active. ref is the skill's name or
// [ID.Key], or another reference that [Skills.Fetch] accepts. o may be nil. If
// the load exceeds [Options.Budget], Load unloads other skills.
//
// Concurrent calls with the same reference and options share a load. One of
// them gets the text; the others get [StateAlreadyLoaded]. If no caller waits
// for the load any longer, it is cancelled and nothing is loaded.
//
// If the skill cannot be loaded, Load returns a result with [StateFailed] and
// the reason, not an error. Load returns [ErrClosed] if the session is closed
// and the cause if ctx is done. Any other error is from writing the log.
func (s *Session) Load(ctx context.Context, ref string, o *LoadOptions) (*LoadResult, error) {
	key := loadKey{ref: ref}
	if o != nil {
		key.o = *o
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f := s.joinLoad(ctx, key)
	if f == nil {
		return nil, ErrClosed
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		if s.leaveLoad(key, f) {
			return nil, context.Cause(ctx)
		}
		<-f.done // the load is already in the log, so the caller must get its text
	}
	return s.takeResult(f)
}

// joinLoad joins the load in progress for key, or starts a load. It returns nil
// if the session is closed.
func (s *Session) joinLoad(ctx context.Context, key loadKey) *inflightLoad {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if f := s.inflight[key]; f != nil {
		f.waiting++
		return f
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &inflightLoad{cancel: cancel, done: make(chan struct{}), waiting: 1}
	s.inflight[key] = f
	s.running.Go(func() { s.runLoad(ctx, key, f) })
	return f
}

// leaveLoad stops waiting for a load, and cancels the load if nobody else waits
// for it. If the outcome is already final, it does nothing and returns false.
func (s *Session) leaveLoad(key loadKey, f *inflightLoad) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.decided {
		return false
	}
	if f.waiting--; f.waiting == 0 {
		delete(s.inflight, key)
		f.cancel()
	}
	return true
}

func (s *Session) runLoad(ctx context.Context, key loadKey, f *inflightLoad) {
	defer close(f.done)
	defer f.cancel()
	all, err := s.fetch(ctx, key)
	provided, alternatives := s.connectTools(ctx, all), ""
	if err != nil && key.o.ByModel {
		alternatives = s.describeAlternatives(ctx, key.ref, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiting > 0 { // otherwise, leaveLoad has removed f from s.inflight
		delete(s.inflight, key)
		f.decided = true
		if f.err = ErrClosed; !s.closed {
			f.result, f.err = s.finishLoad(ctx, key.o, all, provided, err, alternatives)
		}
	}
	s.releaseTools(s.inactive(all))
}

// takeResult returns the result of a finished load. Only the first caller gets
// the text.
func (s *Session) takeResult(f *inflightLoad) (*LoadResult, error) {
	if f.err != nil {
		return nil, f.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := *f.result
	if r.State == StateFailed || r.State == StateAlreadyLoaded {
		return &r, nil
	}
	if f.taken {
		again := alreadyLoaded(r.Skill)
		again.Tools, again.Problems = r.Tools, r.Problems
		return again, nil
	}
	f.taken = true
	return &r, nil
}

// finishLoad makes the fetched skills active. If fetching failed with err, it
// returns a failed result. s.mu must be held.
func (s *Session) finishLoad(ctx context.Context, o LoadOptions, all []*Skill, provided providedTools, err error, alternatives string) (*LoadResult, error) {
	if err != nil {
		return &LoadResult{State: StateFailed, Text: s.failureText(err, alternatives), Problems: []string{errorText(err)}}, nil
	}
	return s.commitLoad(ctx, s.planLoad(o, all, provided), all)
}

// loadPlan holds the changes made by a load: events for the log and text for
// the model.
type loadPlan struct {
	session  *Session
	options  LoadOptions
	provided providedTools

	events   []Event
	texts    []string
	loads    int    // number of skills that were not active in this version
	previous string // earlier text of the last skill that is still in the conversation; may be ""
	result   LoadResult
}

// planLoad compares skills with the state of the session. The skills are in
// load order, the requested one last. s.mu must be held.
func (s *Session) planLoad(o LoadOptions, all []*Skill, provided providedTools) *loadPlan {
	main := all[len(all)-1]
	p := &loadPlan{session: s, options: o, provided: provided, result: LoadResult{State: StateLoaded, Skill: main, Tools: provided.tools}}
	for _, m := range all {
		if active, ok := p.activeForm(m); ok {
			p.reuse(m, active)
		} else {
			p.load(m)
		}
	}
	return p
}

// activeForm returns the active skill with the ID of m, and reports whether
// loading m again would change nothing.
func (p *loadPlan) activeForm(m *Skill) (ActiveSkill, bool) {
	filled := m == p.result.Skill && p.options.Arguments != "" // the text differs for each load
	a, ok := p.session.state.find(m.ID)
	if ok && a.Digest != m.Digest {
		pinned := p.session.updates == UpdatePin && a.Current == a.Digest // otherwise, the model was told to load it
		return a, pinned && p.options.cause() != ByUser
	}
	return a, ok && !filled && a.Model == m.Model && slices.Equal(a.AllowedTools, m.AllowedTools)
}

// reuse records the use of an active skill. It also records the tools that the
// skill has gained since it was loaded, for example after an approval.
func (p *loadPlan) reuse(m *Skill, active ActiveSkill) {
	use := SkillUse{Skill: m.ID}
	use.Retention, use.Exact = p.options.retentionOf(p.result.Skill, active)
	added := p.provided.without(m.ID, active.Tools)
	use.Tools = added.names(m.ID)
	if m == p.result.Skill {
		p.texts = append(p.texts, skilltext.AlreadyLoaded(m.ID.Name))
	}
	if text := added.text(); text != "" {
		p.texts = append(p.texts, text)
	}
	if p.options.update {
		active.Used = p.session.state.Turn // an update of another skill is no use
	}
	if use.Exact || active.Used != p.session.state.Turn || use.Retention != active.Retention || len(use.Tools) > 0 {
		p.events = append(p.events, Event{Used: &use})
	}
}

// load adds the event and the text for loading a skill to the plan.
func (p *loadPlan) load(m *Skill) {
	p.loads++
	o, main := p.options, p.result.Skill
	l := SkillLoad{Skill: m.ID, Title: m.distinctTitle(), Digest: m.Digest, Version: m.Version, Text: Render(m), Files: m.Files, Tokens: m.Tokens, Needs: m.Needs, Tools: p.provided.names(m.ID),
		Retention: o.Retention, Direct: o.Direct, AllowedTools: m.AllowedTools, Model: m.Model, Description: m.Description, By: o.cause(), Why: o.Why}
	if old, ok := p.session.state.find(m.ID); ok {
		l.Retention, _ = o.retentionOf(main, old)
	}
	if old, ok := p.session.state.find(m.ID); ok && o.update {
		l.By, l.Why, l.RequiredBy, l.UnusedTurns = old.By, old.Why, old.RequiredBy, p.session.state.Turn-old.Used
		p.events = append(p.events, Event{Notice: &Notice{Text: updateText(m.ID)}})
	} else if m != main {
		l.RequiredBy, l.By, l.Why = main.ID.Name, ByDependency, ""
		p.result.Dependencies = append(p.result.Dependencies, m.ID.Name)
	}
	p.events = append(p.events, Event{Loaded: &l})
	if p.previous = p.session.deliveredText(&l); p.previous != "" {
		p.texts = append(p.texts, renderReloaded(m))
	} else {
		p.texts = append(p.texts, l.Text)
	}
	p.result.Problems = append(p.result.Problems, m.Problems...)
}

// commitLoad appends the plan's events and returns the result. s.mu must be
// held.
func (s *Session) commitLoad(ctx context.Context, p *loadPlan, all []*Skill) (*LoadResult, error) {
	main := p.result.Skill
	if rest := p.provided.text(); rest != "" && p.loads > 0 { // part of the text for the model
		if !strings.HasSuffix(p.previous, "\n"+rest) {
			p.texts = append(p.texts, rest)
		}
		lastLoad(p.events).Text += "\n" + rest
	}
	if len(p.events) > 0 {
		events := append(p.events, s.evictions(all, p.events)...)
		if err := s.append(ctx, events...); err != nil {
			return nil, fmt.Errorf("load %s: %w", main.ID.Name, err)
		}
	}
	r := p.result
	r.Text = strings.Join(p.texts, "\n")
	r.Problems = append(r.Problems, p.provided.problems...)
	switch {
	case p.loads == 0:
		r.State, r.Problems = StateAlreadyLoaded, slices.Concat(main.Problems, p.provided.problems)
	case len(r.Problems) > 0:
		r.State = StateDegraded
	}
	return &r, nil
}

// deliveredText returns the text that was sent when the skill was loaded
// earlier, if the conversation still contains it and the instructions are the
// same. Otherwise it returns "". s.mu must be held.
func (s *Session) deliveredText(l *SkillLoad) string {
	if l.Direct {
		return "" // its text is part of the conversation at this event
	}
	if text := s.state.delivered[l.Skill]; strings.HasPrefix(text, l.Text) {
		return text
	}
	return ""
}

// fetch returns the skills to load, with the arguments inserted into the
// instructions.
func (s *Session) fetch(ctx context.Context, key loadKey) ([]*Skill, error) {
	all, err := s.skills.Fetch(ctx, key.ref)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("skill %s: %w", key.ref, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if key.o.update {
		if err := s.checkUpdate(ctx, all); err != nil {
			return nil, err
		}
	}
	main := all[len(all)-1]
	if main.Hidden && key.o.ByModel {
		return nil, errUserOnly(main)
	}
	if key.o.Direct && !key.o.update || key.o.Arguments != "" {
		filled := *main // main may be shared
		rest := ""
		filled.Instructions, rest = skilltext.FillArguments(main.Instructions, []string{key.o.Arguments}, main.ArgumentHint != "")
		if rest != "" {
			filled.Instructions = strings.TrimRight(filled.Instructions, "\r\n") + "\n\nArguments: " + rest + "\n"
		}
		all = slices.Clone(all)
		all[len(all)-1] = &filled
	}
	return all, nil
}

func errUserOnly(m *Skill) error {
	return fmt.Errorf("only users can load skill %s (disable-model-invocation)", m.ID.Name)
}

// lastLoad returns the last load in events, which must contain one.
func lastLoad(events []Event) *SkillLoad {
	for _, e := range slices.Backward(events) {
		if e.Loaded != nil {
			return e.Loaded
		}
	}
	panic("no skill was loaded")
}

func alreadyLoaded(m *Skill) *LoadResult {
	return &LoadResult{State: StateAlreadyLoaded, Skill: m, Text: skilltext.AlreadyLoaded(m.ID.Name), Problems: m.Problems}
}

// maxNamed is the maximum number of available skills listed if a skill cannot
// be loaded.
const maxNamed = 20

// describeAlternatives returns a text for the model that lists what it may use
// instead of a skill that could not be loaded; see [Tools].
func (s *Session) describeAlternatives(ctx context.Context, ref string, err error) string {
	if d, ok := s.tools.(interface {
		DescribeSkillAlternatives(ctx context.Context, ref string, err error) string
	}); ok {
		return d.DescribeSkillAlternatives(ctx, ref, err)
	}
	return ""
}

// failureText returns the text for the model if a skill cannot be loaded: the
// reason and the alternatives. If the skill was not found and there are no
// alternatives, the available skills follow.
func (s *Session) failureText(err error, alternatives string) string {
	if alternatives != "" {
		return sentence(err) + alternatives
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return errorText(err)
	}
	names := s.skills.Names()
	if len(names) == 0 {
		return sentence(err) + " There are no skills."
	}
	text := sentence(err) + " Available skills: " + strings.Join(names[:min(len(names), maxNamed)], ", ")
	if rest := len(names) - maxNamed; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// sentence returns the text of err, followed by a period unless the text ends
// in a question mark.
func sentence(err error) string {
	text := errorText(err)
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// errorText returns the message of err for the model and the user. It is
// cleaned, because it may contain arguments or text of a skill.
func errorText(err error) string { return untrusted.ErrorText(err).ForModelLines() }
