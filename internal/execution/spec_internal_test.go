package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

func TestLimits(t *testing.T) {
	d := prepare.DefaultLimits()
	with := func(change func(*sandbox.Limits)) sandbox.Limits {
		l := d
		change(&l)
		return l
	}
	processes := func(n int) sandbox.Limits { return with(func(l *sandbox.Limits) { l.Processes = n }) }
	for _, tt := range []struct {
		name   string
		kind   script.Kind
		bounds policy.Bounds // of the skill
		limit  policy.Bounds // of the operator
		change func(*specBuilder)
		want   sandbox.Limits
	}{
		{name: "defaults", want: d},
		{name: "bounds", bounds: policy.Bounds{MemoryMB: 7, Seconds: 9, Processes: 3},
			want: with(func(l *sandbox.Limits) { l.Memory, l.Wall, l.CPU, l.Processes = 7<<20, 9*time.Second, 9*time.Second, 3 })},
		{name: "disk", bounds: policy.Bounds{DiskMB: 1}, want: with(func(l *sandbox.Limits) { l.Work, l.FileSize = 1<<20, 1<<20 })},
		{name: "Node", kind: script.Node, want: processes(d.Processes * nodeProcesses)},
		{name: "TypeScript", kind: script.TypeScript, want: processes(d.Processes * nodeProcesses)},
		{name: "more processes than the default", bounds: policy.Bounds{Processes: d.Processes + 1}, want: d},
		{name: "more processes by the operator", bounds: policy.Bounds{Processes: d.Processes + 1}, limit: policy.Bounds{Processes: 1000}, want: processes(d.Processes + 1)},
		{name: "shorter timeout", change: func(b *specBuilder) { b.timeout = time.Second }, want: with(func(l *sandbox.Limits) { l.Wall = time.Second })},
		{name: "longer timeout", change: func(b *specBuilder) { b.timeout = d.Wall + 1 }, want: d},
		{name: "service", bounds: policy.Bounds{Seconds: 9}, change: func(b *specBuilder) { b.service = true }, want: with(func(l *sandbox.Limits) { l.Wall, l.CPU = noTimeLimit, noTimeLimit })},
	} {
		b := &specBuilder{opts: &Options{Bounds: tt.limit}, program: &program{plan: &script.Plan{Kind: tt.kind}}, auth: &authorization{bounds: tt.bounds}}
		if tt.change != nil {
			tt.change(b)
		}
		if got := b.limits(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestReduceBounds(t *testing.T) {
	d := prepare.DefaultLimits()
	const many = 1 << 20
	asked := policy.Bounds{MemoryMB: many, Seconds: many, Processes: many, DiskMB: many, Network: []string{"a.example"}}
	got := reduceBounds(asked, policy.Bounds{Network: []string{"*"}})
	if got.MemoryMB != int(d.Memory>>20) || got.Seconds != int(d.Wall.Seconds()) || got.Processes != nodeProcesses*d.Processes || got.DiskMB != int(d.Work>>20) {
		t.Errorf("without limits of the operator: %+v", got)
	}
	if got := reduceBounds(asked, policy.Bounds{MemoryMB: 9000, Seconds: 9000, Processes: 900, DiskMB: 9000}); got.MemoryMB != 9000 || got.Seconds != 9000 || got.Processes != 900 || got.DiskMB != 9000 {
		t.Errorf("with limits of the operator: %+v", got)
	}
}

func TestSpec(t *testing.T) {
	secret := func(_ context.Context, _ policy.Digest, name string) (string, error) {
		switch name {
		case "BROKEN":
			return "", errors.New("locked")
		case "UNSET":
			return "", nil
		}
		return "value of " + name, nil
	}
	inject := []policy.Injection{{Secret: "KEY", Host: "api.example", Port: 443, Header: "Authorization", Prefix: "Bearer "}}
	bounds := policy.Bounds{Network: []string{"api.example"}, Secrets: []string{"KEY", "OTHER"}}
	for _, tt := range []struct {
		name    string
		tier    sandbox.Tier
		auth    authorization
		given   []sandbox.Secret
		host    bool
		allow   string
		secrets string // visible to the code
		inject  int
		note    string
		err     string
	}{
		{name: "nothing", tier: sandbox.Isolated},
		{name: "hosts", tier: sandbox.Isolated, auth: authorization{bounds: policy.Bounds{Network: []string{"a.example"}}}, allow: "a.example"},
		{name: "host network", tier: sandbox.Isolated, auth: authorization{hostNetwork: true, bounds: policy.Bounds{Network: []string{"a.example"}}}, host: true, note: "full access"},
		{name: "no isolation", tier: sandbox.Limited, host: true},
		{name: "injected", tier: sandbox.Isolated, auth: authorization{bounds: bounds, inject: inject}, allow: "api.example", secrets: "OTHER", inject: 1},
		{name: "injected, around the proxy", tier: sandbox.Isolated, auth: authorization{bounds: bounds, inject: inject, hostNetwork: true}, host: true, secrets: "OTHER", note: "KEY is not added"},
		{name: "injected, host not granted", tier: sandbox.Isolated, auth: authorization{bounds: policy.Bounds{Secrets: []string{"KEY"}}, inject: inject}, note: "KEY is not added"},
		{name: "injected, not granted", tier: sandbox.Isolated, auth: authorization{bounds: policy.Bounds{Network: []string{"api.example"}}, inject: inject}, allow: "api.example"},
		{name: "given", tier: sandbox.Isolated, given: []sandbox.Secret{sandbox.NewSecret("BROKEN", "x")}, auth: authorization{bounds: policy.Bounds{Secrets: []string{"BROKEN"}}}, secrets: "BROKEN"},
		{name: "unset", tier: sandbox.Isolated, auth: authorization{bounds: policy.Bounds{Secrets: []string{"UNSET"}}}, note: "secret UNSET is not set"},
		{name: "unreadable", tier: sandbox.Isolated, auth: authorization{bounds: policy.Bounds{Secrets: []string{"BROKEN"}}}, err: "get secret BROKEN for skill x: locked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &specBuilder{opts: &Options{Secret: secret}, owner: owner{label: "skill x", digest: "d"}, program: &program{plan: &script.Plan{Env: map[string]string{"A": "b"}, Bin: []string{"/opt/bin", "/x/bin"}, Prefixes: []string{"/opt"}}}, auth: &tt.auth, secrets: tt.given}
			s, err := b.build(t.Context(), tt.tier)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, sec := range s.Secrets {
				names = append(names, sec.Name)
			}
			if s.Network.Host != tt.host || strings.Join(s.Network.Allow, " ") != tt.allow || strings.Join(names, " ") != tt.secrets || len(s.Network.Inject) != tt.inject {
				t.Errorf("network %+v, secrets %q", s.Network, names)
			}
			if notes := strings.Join(b.notes, "\n"); !strings.Contains(notes, tt.note) || (notes == "") != (tt.note == "") {
				t.Errorf("notes %q", notes)
			}
			if s.Digest != "d" || s.Env["A"] != "b" || s.Env["PATH"] != "/opt/bin:/x/bin:/usr/local/bin:/usr/bin:/bin" || len(s.Mounts) != 1 || s.Mounts[0].Writable {
				t.Errorf("spec %+v", s)
			}
		})
	}
}

func TestAccess(t *testing.T) {
	for _, tt := range []struct {
		workspace     string
		write, direct bool
		want          Access
	}{
		{"", true, true, ReadOnly}, {"/w", false, true, ReadOnly}, {"/w", true, false, Overlay}, {"/w", true, true, OverlayOrDirect},
	} {
		b := &specBuilder{opts: &Options{DirectWorkspace: tt.direct}, auth: &authorization{bounds: policy.Bounds{WorkspaceWrite: tt.write}}, workspace: tt.workspace}
		if got := b.access(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// fixedBackend is a backend whose probe has a fixed result.
type fixedBackend struct {
	sandbox.Backend
	tier sandbox.Tier
	err  error
}

func (b fixedBackend) Probe(context.Context) (*sandbox.Report, error) {
	return &sandbox.Report{Backend: "fixed", Tier: b.tier}, b.err
}

func TestCheckIsolation(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		b    sandbox.Backend
		tier int
		want string // "" if the sandbox suffices
	}{
		{nil, 0, ""}, {fixedBackend{err: broken}, 0, ""}, {fixedBackend{tier: sandbox.Isolated}, int(sandbox.Isolated), ""}, {fixedBackend{tier: sandbox.Isolated}, int(sandbox.Limited), ""},
		{fixedBackend{tier: sandbox.Confined}, int(sandbox.Isolated), "isolation tier 3"}, {nil, 1, "a sandbox of isolation tier 1"}, {fixedBackend{tier: sandbox.Isolated, err: broken}, 1, "broken"},
	} {
		err := checkIsolation(t.Context(), tt.b, owner{label: "skill x"}, tt.tier)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "skill x: ")) {
			t.Errorf("%+v, tier %d: %v, want %q", tt.b, tt.tier, err, tt.want)
		}
	}
}

func TestCheckPackage(t *testing.T) {
	installed := &Package{Registry: "npm", Name: "weather", Version: "1.2.0", Requested: "weather"}
	other := installed.Need()
	other.Name = "npm:weather@1.1.0"
	other.Digest = "sha256:1"
	content := installed.Need()
	content.Digest = "sha256:3"
	unrelated := policy.Need{Name: "npm:weather-map@1.2.0", Digest: "sha256:2"}
	for _, tt := range []struct {
		name  string
		grant *policy.Grant
		want  string
	}{
		{"no grant needed", nil, ""},
		{"approved", &policy.Grant{Needs: []policy.Need{unrelated, installed.Need()}}, ""},
		{"another content", &policy.Grant{Needs: []policy.Need{content}}, "the installed files of weather 1.2.0 differ from the approved ones, or an earlier version of Loadout approved them; review skill x and approve it again"},
		{"another version", &policy.Grant{Needs: []policy.Need{other, unrelated}}, "approved weather@1.1.0, but installed 1.2.0"},
		{"not installed", &policy.Grant{Needs: []policy.Need{unrelated}}, "weather 1.2.0 was not installed when the skill was approved"},
	} {
		err := (&authorization{grant: tt.grant}).checkPackage("x", &packageCommand{launcher: "npx"}, installed)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestWithApproval(t *testing.T) {
	refused, declined := &RefusedError{Skill: "x"}, errors.New("declined")
	for _, tt := range []struct {
		name    string
		skill   string
		approve func(context.Context, *RefusedError, Attempt) error
		results []error // of the operation
		want    error
	}{
		{"allowed", "x", func(context.Context, *RefusedError, Attempt) error { return errors.New("asked") }, []error{nil}, nil},
		{"nobody to ask", "x", nil, []error{refused}, refused},
		{"no skill", "", func(context.Context, *RefusedError, Attempt) error { return nil }, []error{refused}, refused},
		{"approved", "x", func(context.Context, *RefusedError, Attempt) error { return nil }, []error{fmt.Errorf("run: %w", refused), nil}, nil},
		{"declined", "x", func(context.Context, *RefusedError, Attempt) error { return declined }, []error{refused}, declined},
		{"refused again", "x", func(context.Context, *RefusedError, Attempt) error { return nil }, []error{refused, refused}, refused},
		{"another error", "x", func(context.Context, *RefusedError, Attempt) error { return nil }, []error{declined}, declined},
	} {
		calls := 0
		r := &Runner{opts: Options{Approve: tt.approve}}
		n, err := withApproval(t.Context(), r, Attempt{Skill: tt.skill}, func() (int, error) { calls++; return calls, tt.results[calls-1] })
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil || n != len(tt.results) || calls != len(tt.results) {
			t.Errorf("%s: %d, %v after %d calls", tt.name, n, err, calls)
		}
	}
	host := errors.New("of the host")
	r := &Runner{opts: Options{Refused: func(e *RefusedError) error { return host }}}
	if err := r.convertRefusal(refused); err != host {
		t.Errorf("converted to %v", err)
	}
	if err := r.convertRefusal(declined); err != declined {
		t.Errorf("another error is converted to %v", err)
	}
}

func TestParseCommand(t *testing.T) {
	for _, tt := range []struct {
		args, words []string
		installs    bool
		err         string
	}{
		{args: []string{"python3", "${CLAUDE_SKILL_DIR}/a.py"}, words: []string{"python3", mountpoint.Skill + "/a.py"}},
		{args: []string{"{baseDir}/run", "${SKILL_DIR}", "${LOADOUT_SKILL}/x", "${CLAUDE_PLUGIN_ROOT}"}, words: []string{mountpoint.Skill + "/run", mountpoint.Skill, mountpoint.Skill + "/x", mountpoint.Skill}},
		{args: []string{"npx", "-y", "weather"}, words: []string{"npx", "-y", "weather"}, installs: true},
		{args: []string{"/usr/bin/uvx", "weather"}, words: []string{"/usr/bin/uvx", "weather"}, installs: true},
		{args: nil, err: "empty command"}, {args: []string{""}, err: "empty command"},
		{args: []string{"docker", "run", "x"}, err: "cannot start containers"}, {args: []string{"/usr/bin/podman.exe"}, err: "cannot start containers"},
	} {
		c, err := parseCommand(tt.args)
		installs, err2 := CheckCommand(tt.args)
		if tt.err != "" {
			if err == nil || err2 == nil || !strings.Contains(err.Error(), tt.err) || installs {
				t.Errorf("%q: %v, %v", tt.args, err, err2)
			}
			continue
		}
		if err != nil || err2 != nil || !slices.Equal(c.words, tt.words) || installs != tt.installs || (c.pkg != nil) != tt.installs {
			t.Errorf("%q: %+v, installs %t, %v", tt.args, c, installs, err)
		}
	}
	c := command{words: []string{"/bin/a.exe", "b", "c", "d"}}
	if c.program() != "a" || c.name() != "/bin/a.exe b c" {
		t.Errorf("program %q, name %q", c.program(), c.name())
	}
}
