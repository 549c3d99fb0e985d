package loadout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

func TestRunReturnsOutput(t *testing.T) {
	tree := sh()
	tree["sh/deep/er.py"] = "import sys; print(sys.argv[1:], sys.stdin.read())\n"
	tree["sh/notes.txt"] = "x"
	s := newShop(t, tree, nil)
	t.Run("streams, arguments, exit code, directory", func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		var said []string
		res := s.ran(t, loadout.Run{Skill: "sh", Script: "do.sh", Args: []string{`echo "$2"; cat; pwd; echo bad >&2; exit 3`, "a b; $x"},
			Stdin: strings.NewReader("in\n"), Stdout: &stdout, Stderr: &stderr, Progress: func(what string) { said = append(said, what) }})
		want := "a b; $x\nin\n/work\n"
		if res.ExitCode != 3 || res.Stdout != want || res.Stderr != "bad\n" || stdout.String() != want || stderr.String() != "bad\n" || res.Reason != sandbox.Exited || res.Killed || res.Truncated {
			t.Errorf("got %+v", res)
		}
		if res.Skill != "sh" || res.Script != "do.sh" || res.Backend != "native" || res.Tier != 3 || len(res.Digest) != 71 || res.Limits["memory"] == "" || res.DeniedHosts == nil || res.Files == nil {
			t.Errorf("got %+v", res)
		}
		if !slices.Equal(said, []string{"running do.sh"}) {
			t.Errorf("it tells of %q", said)
		}
	})
	t.Run("a script by its base name", func(t *testing.T) {
		if _, err := script.Resolve(os.DirFS(filepath.Join(s.dir, "sh")), "deep/er.py", script.Host{}); err != nil {
			t.Skip(err)
		}
		if out := s.says(t, loadout.Run{Skill: "sh", Script: "er.py", Args: []string{"x y"}, Stdin: strings.NewReader("in")}); out != "['x y'] in\n" {
			t.Errorf("got %q", out)
		}
	})
	t.Run("a timeout is a result", func(t *testing.T) {
		run := do("echo began; sleep 600")
		run.Timeout = 3 * time.Second
		res := s.ran(t, run)
		if res.Reason != sandbox.Timeout || !res.Killed || res.ExitCode == 0 || res.Stdout != "began\n" || !strings.Contains(res.Detail, "3s") {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("end of context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		errGone := errors.New("gone")
		run := do("echo began; sleep 600")
		run.ByUser, run.Stdout = true, writer(func([]byte) { cancel(errGone) })
		res, err := s.Run(ctx, run)
		if !errors.Is(err, errGone) || res == nil || res.Stdout != "began\n" || !res.Killed {
			t.Errorf("got %+v, %v", res, err)
		}
	})
	t.Run("output that is no text", func(t *testing.T) {
		if out := s.says(t, do(`printf 'a\377b'`)); out != "a\uFFFDb" {
			t.Errorf("got %q", out)
		}
	})
	for _, tt := range []struct {
		run  loadout.Run
		want any
		text string
	}{
		{loadout.Run{Skill: "shh", Script: "do.sh"}, new(*catalog.NotFoundError), "did you mean sh?"},
		{loadout.Run{Skill: "sh", Script: "du.sh"}, new(*script.NotFoundError), "do.sh"},
		{loadout.Run{Skill: "sh", Script: "notes.txt"}, new(*script.NotScriptError), "notes.txt"},
		{loadout.Run{Skill: "sh", Script: "../do.sh"}, new(*script.OutsideError), "do.sh"},
		{loadout.Run{Skill: "sh", Script: "/bin/sh"}, new(*script.OutsideError), "/bin/sh"},
	} {
		tt.run.ByUser = true
		s.audit.take()
		res, err := s.try(t, tt.run)
		if res != nil || !errors.As(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s of %s: %+v, %v", tt.run.Script, tt.run.Skill, res, err)
		}
		if recs, ends := s.audit.take(); len(recs)+len(ends) != 0 {
			t.Errorf("recorded is %+v, of what there is not", recs)
		}
	}
}

// writer is a function as an io.Writer.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// A script runs only with the bytes that were hashed.
func TestSwappedFileIsNeverRun(t *testing.T) {
	tree := files{
		"sh/SKILL.md": "---\nname: sh\ndescription: x\ndependencies: [need]\n---\n", "sh/do.sh": "echo good; . ./../skill/lib/part.sh\n", "sh/lib/part.sh": "echo part\n",
		"need/SKILL.md": skillText("need", "x"), "need/tool.sh": "echo tool\n",
	}
	for _, tt := range []struct {
		name string
		swap func(t *testing.T, dir string) error
		path string // path in the error
	}{
		{"the script, as long", func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "sh/do.sh"), []byte(strings.Replace(tree["sh/do.sh"], "good", "evil", 1)), 0o644)
		}, "/skill/do.sh"},
		{"longer", func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "sh/do.sh"), []byte(tree["sh/do.sh"]+"echo evil\n"), 0o644)
		}, "/skill/do.sh"},
		{"shorter", func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "sh/do.sh"), []byte("echo evil\n"), 0o644)
		}, "/skill/do.sh"},
		{"what it reads", func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "sh/lib/part.sh"), []byte("echo evil\n"), 0o644)
		}, "/skill/lib/part.sh"},
		{"what it needs", func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "need/tool.sh"), []byte("echo evil\n"), 0o644)
		}, "/needs/need/tool.sh"},
		{"removed", func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "sh/lib/part.sh")) }, "/skill/lib/part.sh"},
		{"a link in its place", func(_ *testing.T, dir string) error {
			p := filepath.Join(dir, "sh/do.sh")
			return errors.Join(os.Remove(p), os.Symlink("/bin/sh", p))
		}, "/skill/do.sh"},
		{"a pipe in its place", func(t *testing.T, dir string) error {
			p := filepath.Join(dir, "sh/do.sh")
			err := os.Remove(p)
			if !makePipe(p) {
				t.Skip("this system has no pipes with a name")
			}
			return err
		}, "/skill/do.sh"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t, tree, nil)
			s.approve(t, "sh")
			var out bytes.Buffer
			res, err := s.try(t, loadout.Run{Skill: "sh", Script: "do.sh", Stdout: &out, Progress: func(what string) {
				if err := tt.swap(t, s.dir); err != nil {
					t.Error(err)
				}
			}})
			changed, ok := errors.AsType[*sandbox.ChangedError](err)
			if !ok || res != nil || out.Len() > 0 || changed.Tree+"/"+changed.Path != tt.path {
				t.Errorf("got %+v, %v, output %q; want an error that names %s", res, err, out.String(), tt.path)
			}
		})
	}
}

// The files of an embedding program may change between two openings, with the
// same size and time.
func TestLyingSourceIsNotBelieved(t *testing.T) {
	for n := range 12 {
		t.Run(fmt.Sprintf("opening %d", n), func(t *testing.T) {
			for name, texts := range map[string][2]string{
				"liar/do.sh":      {"echo good\n", "echo evil\n"},
				"once liar/do.sh": {"echo good\n", "#!/usr/bin/env -S sh -c 'echo evil' x\n"}, // decides what runs it
				"liar/SKILL.md":   {"---\nname: liar\ndescription: x\nsandbox: {seconds: 10}\n---\n", "---\nname: liar\ndescription: x\nsandbox: {seconds: 60}\n---\n"},
			} {
				name, once := strings.CutPrefix(name, "once ")
				lies := &liar{once: once, files: fstest.MapFS{"liar/SKILL.md": {Data: []byte(skillText("liar", "x"))}, "liar/do.sh": {Data: []byte("echo good\n")}}, name: name, texts: texts, after: 1 << 30}
				s := newShop(t, nil, func(s *shop, o *loadout.Options) {
					o.Sources = []catalog.Source{catalog.NewFS("liar", catalog.User, lies)}
				})
				good := s.approve(t, "liar").Subject
				lies.after = lies.opened + n
				res, err := s.try(t, loadout.Run{Skill: "liar", Script: "do.sh"})
				if err == nil && (res.Stdout != "good\n" || res.Digest != string(good)) {
					t.Errorf("%s: got %+v", name, res)
				}
			}
		})
	}
}

// liar changes the text of one file after some openings, or for the next one
// only.
type liar struct {
	files         fstest.MapFS
	name          string
	texts         [2]string
	opened, after int
	once          bool
}

func (l *liar) Open(name string) (fs.File, error) {
	if name != l.name {
		return l.files.Open(name)
	}
	text := l.texts[0]
	if l.opened++; l.opened == l.after+1 || l.opened > l.after && !l.once {
		text = l.texts[1]
	}
	return fstest.MapFS{name: {Data: []byte(text)}}.Open(name)
}

// The same files are the same skill and run in the same way, whatever their
// source.
func TestScriptsFromEachSourceRun(t *testing.T) {
	tree := files{"tool/SKILL.md": skillText("tool", "x"), "tool/scripts/show.sh": "cat \"$LOADOUT_SKILL/data/a b.txt\"; cd /skill; find . -type f | sort; touch new 2>/dev/null || echo read-only\n", "tool/data/a b.txt": "data\n"}
	const want = "data\n./SKILL.md\n./data/a b.txt\n./scripts/show.sh\nread-only\n"
	memory := fstest.MapFS{}
	for name, text := range tree {
		memory[name] = &fstest.MapFile{Data: []byte(text)}
	}
	home := t.TempDir()
	tree.write(t, filepath.Join(home, "skills"))
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(home, "tool.zip")
	f, err := os.OpenFile(archive, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _, err = skill.WriteZIP(f, os.DirFS(filepath.Join(home, "skills", "tool")), "tool")
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	var digests []string
	for name, source := range map[string]catalog.Source{
		"a directory below a closed home": catalog.NewDir("x", catalog.User, filepath.Join(home, "skills"), nil),
		"an archive":                      catalog.NewArchive("x", catalog.User, archive),
		"memory":                          catalog.NewFS("x", catalog.User, memory),
		"embedded":                        catalog.NewFS("x", catalog.Bundled, memory),
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, nil, func(s *shop, o *loadout.Options) { o.Sources = []catalog.Source{source} })
			s.approve(t, "tool")
			res, err := s.try(t, loadout.Run{Skill: "tool", Script: "scripts/show.sh"})
			if err != nil || res.Stdout != want {
				t.Fatalf("got %+v, %v; want %q", res, err, want)
			}
			digests = append(digests, res.Digest)
		})
	}
	if len(slices.Compact(digests)) > 1 {
		t.Errorf("digests %q, want one", digests)
	}
}

func TestRequirementsAreMounted(t *testing.T) {
	s := newShop(t, files{
		"top/SKILL.md": "---\nname: top\ndescription: x\ndependencies: [mid-way]\n---\n",
		"top/go.sh":    "env | grep ^LOADOUT_SKILL | sort; cat /needs/*/name; . \"$LOADOUT_SKILL_MID_WAY/lib.sh\"; echo x 2>/dev/null > /needs/base/name || echo read-only\n",
		"mid/SKILL.md": "---\nname: mid-way\ndescription: x\ndependencies: [base]\n---\n", "mid/name": "mid\n", "mid/lib.sh": "echo library\n",
		"base/SKILL.md": skillText("base", "x"), "base/name": "base\n",
	}, nil)
	g := s.approve(t, "top")
	if len(g.Needs) != 2 || g.Needs[0].Name != "base" || g.Needs[1].Name != "mid-way" {
		t.Errorf("the approval binds %+v", g.Needs)
	}
	res, err := s.try(t, loadout.Run{Skill: "top", Script: "go.sh"})
	want := "LOADOUT_SKILL=/skill\nLOADOUT_SKILL_BASE=/needs/base\nLOADOUT_SKILL_MID_WAY=/needs/mid-way\nbase\nmid\nlibrary\nread-only\n"
	if err != nil || res.Stdout != want {
		t.Errorf("got %+v, %v; want %q", res, err, want)
	}
}

func ask(what string) files {
	return files{"sh/SKILL.md": "---\nname: sh\ndescription: x\nsandbox: " + what + "\n---\n", "sh/do.sh": `eval "$1"` + "\n", "sh/do.mjs": "1"}
}

// The requested bounds of a skill reduce what it gets and never extend it.
func TestLimits(t *testing.T) {
	d := prepare.DefaultLimits()
	wall := func(n time.Duration) func(*sandbox.Limits) {
		return func(l *sandbox.Limits) { l.Wall, l.CPU = n*time.Second, n*time.Second }
	}
	for _, tt := range []struct {
		name   string
		bounds policy.Bounds
		ask    string
		run    loadout.Run
		change func(*sandbox.Limits) // relative to the defaults
	}{
		{"nothing", policy.Bounds{}, "{}", loadout.Run{}, func(*sandbox.Limits) {}},
		{"less time", policy.Bounds{}, "{seconds: 7}", loadout.Run{}, wall(7)},
		{"more time", policy.Bounds{}, "{seconds: 3600}", loadout.Run{}, wall(60)},
		{"more time, where the operator gives it", policy.Bounds{Seconds: 7200}, "{seconds: 3600}", loadout.Run{}, wall(3600)},
		{"more than the operator gives", policy.Bounds{Seconds: 90}, "{seconds: 3600}", loadout.Run{}, wall(90)},
		{"no wish", policy.Bounds{Seconds: 90}, "{}", loadout.Run{}, wall(90)},
		{"the run's own", policy.Bounds{Seconds: 90}, "{}", loadout.Run{Timeout: 5 * time.Second}, func(l *sandbox.Limits) { wall(90)(l); l.Wall = 5 * time.Second }},
		{"the run's own, too much", policy.Bounds{Seconds: 90}, "{seconds: 9}", loadout.Run{Timeout: time.Hour}, wall(9)},
		{"less memory", policy.Bounds{}, "{memory_mb: 100}", loadout.Run{}, func(l *sandbox.Limits) { l.Memory = 100 << 20 }},
		{"more memory", policy.Bounds{}, "{memory_mb: 100000}", loadout.Run{}, func(*sandbox.Limits) {}},
		{"memory of the operator", policy.Bounds{MemoryMB: 2048}, "{}", loadout.Run{}, func(l *sandbox.Limits) { l.Memory = 2 << 30 }},
		{"fewer processes", policy.Bounds{}, "{processes: 5}", loadout.Run{}, func(l *sandbox.Limits) { l.Processes = 5 }},
		{"more processes", policy.Bounds{}, "{processes: 5000}", loadout.Run{}, func(*sandbox.Limits) {}},
		{"processes of the operator", policy.Bounds{Processes: 500}, "{processes: 300}", loadout.Run{}, func(l *sandbox.Limits) { l.Processes = 300 }},
		{"node has threads", policy.Bounds{}, "{}", loadout.Run{Script: "do.mjs"}, func(l *sandbox.Limits) { l.Processes = 2 * d.Processes }},
		{"node, more", policy.Bounds{}, "{processes: 5000}", loadout.Run{Script: "do.mjs"}, func(l *sandbox.Limits) { l.Processes = 2 * d.Processes }},
		{"less disk", policy.Bounds{}, "{disk_mb: 8}", loadout.Run{}, func(l *sandbox.Limits) { l.Work, l.FileSize = 8<<20, 8<<20 }},
		{"more disk", policy.Bounds{}, "{disk_mb: 8000}", loadout.Run{}, func(*sandbox.Limits) {}},
		{"disk of the operator", policy.Bounds{DiskMB: 1024}, "{}", loadout.Run{}, func(l *sandbox.Limits) { l.Work, l.FileSize = 1<<30, 512<<20 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &spy{tier: sandbox.Isolated}
			s := anyShop(t, ask(tt.ask), func(s *shop, o *loadout.Options) { o.Scripts.Sandbox, o.Scripts.Bounds = b, tt.bounds })
			want := d
			tt.change(&want)
			run := tt.run
			if run.Skill, run.ByUser = "sh", true; run.Script == "" {
				run.Script = "do.sh"
			}
			if _, err := s.try(t, run); errors.As(err, new(*script.MissingError)) {
				t.Skip(err)
			} else if !errors.Is(err, errSpied) {
				t.Fatal(err)
			}
			if b.spec.Limits != want {
				t.Errorf("got  %+v\nwant %+v", b.spec.Limits, want)
			}
		})
	}
	t.Run("values hold", func(t *testing.T) {
		s := newShop(t, ask("{seconds: 1}"), nil)
		if res := s.ran(t, do("sleep 600")); res.Reason != sandbox.Timeout {
			t.Errorf("got %+v", res)
		}
	})
}

func TestRequiredIsolation(t *testing.T) {
	for _, tt := range []struct {
		tier   sandbox.Tier
		bounds policy.Bounds
		ask    string
		ok     bool
	}{
		{sandbox.Confined, policy.Bounds{}, "{}", true},
		{sandbox.Confined, policy.Bounds{}, "{min_tier: 2}", true},
		{sandbox.Confined, policy.Bounds{}, "{min_tier: 3}", false},
		{sandbox.Confined, policy.Bounds{MinTier: 3}, "{min_tier: 1}", false},
		{sandbox.Isolated, policy.Bounds{MinTier: 3}, "{}", true},
	} {
		b := &spy{tier: tt.tier}
		s := anyShop(t, ask(tt.ask), func(s *shop, o *loadout.Options) { o.Scripts.Sandbox, o.Scripts.Bounds = b, tt.bounds })
		run := do("true")
		run.ByUser = true
		_, err := s.try(t, run)
		if _, weak := errors.AsType[*sandbox.UnsupportedError](err); tt.ok != errors.Is(err, errSpied) || tt.ok == weak || tt.ok != (b.spec != nil) {
			t.Errorf("tier %v, bounds %+v, ask %s: %v", tt.tier, tt.bounds, tt.ask, err)
		}
	}
}

// Check the network and the secrets of a run for requested, granted and limited
// permissions.
func TestNetworkAndSecretsNeedThreeConsents(t *testing.T) {
	const asks = "{network: [a.example, 'b.example:443'], secrets: [KEY], inject: [{secret: TOKEN, host: c.example, header: X-Key}]}"
	all := policy.Bounds{Network: []string{"*"}, Secrets: []string{"*"}}
	value := func(_ context.Context, name string) (string, error) { return "value of " + name, nil }
	type got struct {
		host    bool
		allow   string
		secrets string
		inject  string
	}
	for _, tt := range []struct {
		name   string
		bounds policy.Bounds
		grant  func(*policy.Grant)
		run    loadout.Run
		want   got
		notes  string // some of them
	}{
		{"all of it", all, func(g *policy.Grant) {}, loadout.Run{}, got{false, "a.example b.example:443 c.example:443", "KEY", "X-Key c.example:443 TOKEN"}, ""},
		{"no bounds: nothing", policy.Bounds{}, func(g *policy.Grant) {}, loadout.Run{}, got{}, ""},
		{"granted is less", all, func(g *policy.Grant) { g.Permissions.Network, g.Permissions.Secrets = []string{"a.example:80"}, nil }, loadout.Run{}, got{false, "a.example:80", "", ""}, "not granted: secret KEY"},
		{"granted is more", all, func(g *policy.Grant) { g.Permissions.Network = append(g.Permissions.Network, "evil.example") }, loadout.Run{}, got{false, "a.example b.example:443 c.example:443", "KEY", "X-Key c.example:443 TOKEN"}, ""},
		{"granted without them", all, func(g *policy.Grant) { g.Permissions = policy.Permissions{Run: true} }, loadout.Run{}, got{}, "not granted: network a.example"},
		{"what is to be added is not handed over instead", all, func(g *policy.Grant) { g.Permissions.Network = []string{"a.example"} }, loadout.Run{}, got{false, "a.example", "KEY", ""}, "secret TOKEN is not added"},
		{"typed: as asked", all, nil, loadout.Run{}, got{false, "a.example b.example:443 c.example:443", "KEY", "X-Key c.example:443 TOKEN"}, ""},
		{"typed with the machine's network", all, nil, loadout.Run{HostNetwork: true}, got{true, "", "KEY", ""}, "full access to this machine's network"},
		{"an agent cannot ask for that", all, func(g *policy.Grant) {}, loadout.Run{HostNetwork: true}, got{false, "a.example b.example:443 c.example:443", "KEY", "X-Key c.example:443 TOKEN"}, ""},
		{"granted the machine's network", all, func(g *policy.Grant) { g.Permissions.HostNetwork = true }, loadout.Run{}, got{true, "", "KEY", ""}, "full access to this machine's network"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &spy{tier: sandbox.Isolated}
			s := anyShop(t, ask(asks), func(s *shop, o *loadout.Options) {
				o.Scripts.Sandbox, o.Scripts.Bounds, o.Scripts.Secret = b, tt.bounds, value
			})
			run := tt.run
			run.Skill, run.Script, run.ByUser = "sh", "do.sh", tt.grant == nil
			if tt.grant != nil {
				s.approve(t, "sh", tt.grant)
			}
			if _, err := s.try(t, run); !errors.Is(err, errSpied) {
				t.Fatal(err)
			}
			n := b.spec.Network
			now := got{host: n.Host, allow: strings.Join(n.Allow, " ")}
			for _, sec := range b.spec.Secrets {
				now.secrets = strings.TrimSpace(now.secrets + " " + sec.Name)
				if sec.Reveal() != "value of "+sec.Name {
					t.Errorf("%s is %q", sec.Name, sec.Reveal())
				}
			}
			for _, in := range n.Inject {
				now.inject += in.Header + " " + in.Host + " " + in.Secret.Name
			}
			if now != tt.want {
				t.Errorf("got  %+v\nwant %+v", now, tt.want)
			}
			recs, ends := s.audit.take()
			for _, r := range slices.Concat(recs, ends) {
				if strings.Contains(fmt.Sprint(r), "value of") {
					t.Errorf("a secret is recorded: %+v", r)
				}
			}
		})
	}
}

func TestSecretsAreFilesAndHidden(t *testing.T) {
	var fail error
	s := newShop(t, ask("{secrets: [API_KEY, OTHER]}"), func(s *shop, o *loadout.Options) {
		o.Scripts.Bounds = policy.Bounds{Secrets: []string{"*"}}
		o.Scripts.Secret = func(_ context.Context, name string) (string, error) {
			return map[string]string{"API_KEY": "s3cr3t-value"}[name], fail
		}
	})
	s.approve(t, "sh")
	run := do("cat /run/secrets/API_KEY; echo; wc -c < $LOADOUT_SECRETS/API_KEY; cat /run/secrets/API_KEY >&2; ls /run/secrets; env | grep s3cr3t; grep -al s3cr3t /proc/[0-9]*/environ 2>/dev/null; true")
	var shown bytes.Buffer
	run.Stdout = &shown
	res, err := s.try(t, run)
	if err != nil || res.Stdout != "[secret API_KEY]\n12\nAPI_KEY\n" || res.Stderr != "[secret API_KEY]" || shown.String() != res.Stdout {
		t.Errorf("got %+v, %v", res, err)
	}
	if !slices.Contains(res.Notes, "secret OTHER is not set") {
		t.Errorf("notes %q do not tell what is not set", res.Notes)
	}
	run = do("cat /run/secrets/OTHER")
	run.Secrets = []sandbox.Secret{sandbox.NewSecret("OTHER", "given with it")}
	if out := s.says(t, run); out != "[secret OTHER]" {
		t.Errorf("a secret given with the run: %q", out)
	}
	fail = errors.New("the vault is closed")
	if res, err := s.try(t, do("true")); !errors.Is(err, fail) || res != nil {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestNetworkUsesAllowList(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.URL.Path)
		io.WriteString(w, "answer"+r.Header.Get("X-Key")) // added to TLS requests only
	}))
	defer srv.Close()
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "sealed") }))
	defer tls.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	take := func() []string {
		mu.Lock()
		defer mu.Unlock()
		was := seen
		seen = nil
		return was
	}
	at := func(s *httptest.Server) string { u, _ := url.Parse(s.URL); return u.Host }
	if _, err := os.Stat("/usr/bin/curl"); err != nil {
		t.Skip(err)
	}
	var log bytes.Buffer
	open := func(private bool, grant func(*policy.Grant)) *shop {
		s := newShop(t, ask("{network: ['"+at(srv)+"', '"+at(tls)+"'], inject: [{secret: API_KEY, host: '"+at(srv)+"', header: X-Key, prefix: 'key '}]}"), func(s *shop, o *loadout.Options) {
			o.Scripts.Bounds = policy.Bounds{Network: []string{"*"}, Secrets: []string{"*"}}
			o.Scripts.Secret = func(context.Context, string) (string, error) { return "s3cr3t-value", nil }
			o.Scripts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			if private {
				o.Scripts.PrivateNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
		})
		s.approve(t, "sh", grant)
		return s
	}
	get := func(t *testing.T, s *shop, urls ...string) *loadout.RunResult {
		t.Helper()
		run := do("for u in " + strings.Join(urls, " ") + "; do curl -sSk --noproxy '' -m 20 -o - $u; echo \" $?\"; done")
		res, err := s.try(t, run)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	t.Run("only what is allowed", func(t *testing.T) {
		res := get(t, open(true, func(*policy.Grant) {}), srv.URL+"/a", tls.URL, other.URL+"/b", "http://example.com/")
		if !strings.HasPrefix(res.Stdout, "answer 0\nsealed 0\n") {
			t.Errorf("got %+v", res)
		}
		if paths := take(); !slices.Equal(paths, []string{"/a"}) {
			t.Errorf("the server saw %q", paths)
		}
		if want := []string{at(other), "example.com:80"}; !slices.Equal(res.DeniedHosts, want) {
			t.Errorf("denied %q, want %q", res.DeniedHosts, want)
		}
		if !strings.Contains(log.String(), "example.com") || strings.Contains(log.String(), "s3cr3t") {
			t.Errorf("logged is %q", log.String())
		}
	})
	t.Run("private address must be listed", func(t *testing.T) {
		if res := get(t, open(false, func(*policy.Grant) {}), srv.URL); !slices.Equal(res.DeniedHosts, []string{at(srv)}) {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("not granted: no network", func(t *testing.T) {
		res := get(t, open(true, func(g *policy.Grant) { g.Permissions.Network = nil }), srv.URL)
		if strings.HasSuffix(res.Stdout, " 0\n") || !slices.Contains(res.Notes, "not granted: network "+at(srv)) {
			t.Errorf("got %+v", res)
		}
	})
	if paths := take(); len(paths) > 0 {
		t.Errorf("the server saw %q", paths)
	}
}

func TestWorkspace(t *testing.T) {
	dir := t.TempDir()
	files{"doc.txt": "doc\n"}.write(t, dir)
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Join(dir, "doc.txt"), 0o666), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	const line = "cat /workspace/doc.txt; echo $LOADOUT_WORKSPACE; (echo new > /workspace/new) 2>/dev/null && echo written || echo read-only"
	for _, tt := range []struct {
		name  string
		ask   string
		grant func(*policy.Grant) // nil if the user typed the command
		write bool                // set with the command
		bound bool                // the operator allows no skill to write
		want  string
	}{
		{"is read-only", "{}", func(*policy.Grant) {}, false, false, "read-only"},
		{"even where asked for", "{workspace_write: true}", func(g *policy.Grant) { g.Permissions.WorkspaceWrite = false }, false, false, "read-only"},
		{"until it is granted", "{workspace_write: true}", func(*policy.Grant) {}, false, false, "written"},
		{"also where it is not asked for", "{}", func(g *policy.Grant) { g.Permissions.WorkspaceWrite = true }, false, false, "written"},
		{"but not beyond the operator's bounds", "{workspace_write: true}", func(g *policy.Grant) { g.Permissions.WorkspaceWrite = true }, false, true, "read-only"},
		{"or typed", "{}", nil, true, false, "written"},
		{"not by an agent", "{}", func(*policy.Grant) {}, true, false, "read-only"},
		{"typing the run alone gives none", "{workspace_write: true}", nil, false, false, "read-only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t, ask(tt.ask), func(s *shop, o *loadout.Options) { o.Scripts.Bounds.WorkspaceWrite = !tt.bound })
			run := do(line)
			run.Workspace, run.WriteWorkspace, run.ByUser = dir, tt.write, tt.grant == nil
			if tt.grant != nil {
				s.approve(t, "sh", tt.grant)
			}
			res, err := s.try(t, run)
			if err != nil || res.Stdout != "doc\n/workspace\n"+tt.want+"\n" {
				t.Errorf("got %+v, %v, want %s", res, err, tt.want)
			}
			_, err = os.Stat(filepath.Join(dir, "new"))
			if (err == nil) != (tt.want == "written") {
				t.Errorf("the file: %v", err)
			}
			os.Remove(filepath.Join(dir, "new"))
		})
	}
}

// commandRuntime returns a runtime without skills that runs commands.
func commandRuntime(t *testing.T) *loadout.Runtime {
	t.Helper()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{}, Scripts: &loadout.Scripts{Sandbox: backend()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

func TestCommandWithoutFolder(t *testing.T) {
	needSandbox(t)
	rt, out := commandRuntime(t), t.TempDir()
	res, err := rt.Command(t.Context(), loadout.Command{Args: []string{"sh", "-c", "cat in/a; pwd; cat; ls /; echo b > out/b; exit 4"},
		Inputs: []loadout.Input{{Name: "a", Data: []byte("given\n")}}, Stdin: strings.NewReader("typed\n"), OutputDir: out})
	if err != nil || res.ExitCode != 4 || !strings.HasPrefix(res.Stdout, "given\n/work\ntyped\n") || strings.Contains(res.Stdout, "\nhome\n") && strings.Contains(res.Stdout, "\nroot\n") {
		t.Errorf("got %+v, %v", res, err)
	}
	if b, err := os.ReadFile(filepath.Join(out, "b")); string(b) != "b\n" {
		t.Errorf("got %q, %v", b, err)
	}
	res, err = rt.Command(t.Context(), loadout.Command{Args: []string{"no-such-program"}})
	if err != nil || res.Reason != sandbox.StartFailed || res.ExitCode != 127 {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestCommandWithoutProgram(t *testing.T) {
	if res, err := commandRuntime(t).Command(t.Context(), loadout.Command{}); res != nil || err == nil {
		t.Errorf("Command returned %+v, %v", res, err)
	}
}

func TestRuntimeCommand(t *testing.T) {
	bare, err := loadout.New(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	if res, err := bare.Command(t.Context(), loadout.Command{Args: []string{"true"}, Folder: t.TempDir()}); res != nil || !errors.Is(err, loadout.ErrNoScripts) {
		t.Errorf("a runtime without a sandbox returned %+v, %v", res, err)
	}
	needSandbox(t)
	rt := newShop(t, ask("{}"), nil)
	dir := t.TempDir()
	res, err := rt.Command(t.Context(), loadout.Command{Args: []string{"sh", "-c", "pwd; echo no > file; exit 3"}, Folder: dir})
	if err != nil || res.ExitCode != 3 || res.Stdout != "/workspace\n" {
		t.Errorf("got %+v, %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a command that must not write wrote: %v", err)
	}
	if res, err := rt.Command(t.Context(), loadout.Command{Folder: dir}); res != nil || err == nil {
		t.Errorf("a command without a program returned %+v, %v", res, err)
	}
}
