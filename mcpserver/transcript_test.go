package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/loadout-dev/loadout/internal/testprogram"
)

var update = flag.Bool("update", false, "write what the server answers into the transcripts")

// TestTranscripts plays conversations of a client with `loadout mcp`, as a child process
// on standard input and output, and over HTTP. Both must give the same answers.
//
// A transcript is an archive. era is the era of the protocol, the files below skills are
// the skills, and session is the conversation. Its steps are separated by empty lines:
// "client" with a message to send (modern requests get their _meta), "server" with the
// answer to the last request, "restart", and "edit FILE", which replaces a file below
// skills by the one below edits.
func TestTranscripts(t *testing.T) {
	transcripts, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(transcripts) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	program, err := testprogram.Loadout.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range transcripts {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+" over "+transport, func(t *testing.T) {
				a, err := txtar.ParseFile(file)
				if err != nil {
					t.Fatal(err)
				}
				p := &play{t: t, program: program, transport: transport, dir: filepath.Join(t.TempDir(), "harbour"), archive: a}
				got := p.run()
				session := part(a, "session")
				if *update && got != string(session.Data) {
					session.Data = []byte(got)
					if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(string(session.Data), got); diff != "" {
					t.Errorf("%s (-transcript +now; -update accepts it):\n%s", file, diff)
				}
			})
		}
	}
}

func part(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	return &txtar.File{}
}

// play is one transcript on its way.
type play struct {
	t         *testing.T
	program   string
	transport string
	dir       string // of the skills
	archive   *txtar.Archive

	client *wire
	stop   func()
}

func (p *play) run() string {
	for _, f := range p.archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "skills/"); ok {
			files{name: string(f.Data)}.write(p.t, p.dir)
		}
	}
	p.start()
	defer func() { p.stop() }()
	var out []string
	var last string // id of the last request
	for _, step := range strings.Split(strings.TrimSpace(string(part(p.archive, "session").Data)), "\n\n") {
		head, body, _ := strings.Cut(step, "\n")
		switch verb, arg, _ := strings.Cut(head, " "); verb {
		case "client":
			last = p.send(body)
		case "server":
			if last == "" {
				p.t.Fatalf("an answer to no request:\n%s", step)
			}
			step = "server\n" + p.normal(p.client.answer(last).raw)
			last = ""
		case "restart":
			p.stop()
			p.start()
		case "edit":
			files{arg: string(part(p.archive, "edits/"+arg).Data)}.write(p.t, p.dir)
		default:
			p.t.Fatalf("no such step: %s", head)
		}
		out = append(out, step)
	}
	return strings.Join(out, "\n\n") + "\n"
}

// send sends a message and returns the id of the answer to wait for.
func (p *play) send(body string) string {
	var msg map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &msg); err != nil {
		p.t.Fatalf("%v in\n%s", err, body)
	}
	if p.client.version >= modern && msg["id"] != nil {
		params := map[string]json.RawMessage{}
		if msg["params"] != nil {
			if err := json.Unmarshal(msg["params"], &params); err != nil {
				p.t.Fatal(err)
			}
		}
		var withMeta map[string]json.RawMessage
		if err := json.Unmarshal([]byte("{"+modernMeta+"}"), &withMeta); err != nil {
			p.t.Fatal(err)
		}
		params["_meta"] = withMeta["_meta"]
		js, err := json.Marshal(params)
		if err != nil {
			p.t.Fatal(err)
		}
		msg["params"] = js
	}
	js, err := json.Marshal(msg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.client.raw(string(js))
	return string(msg["id"])
}

var volatile = regexp.MustCompile(`("name":"loadout","title":"Loadout","version":)"[^"]*"`)

// normal is a message without what differs from run to run.
func (p *play) normal(raw json.RawMessage) string {
	raw = volatile.ReplaceAll(raw, []byte(`$1"VERSION"`))
	raw = bytes.ReplaceAll(raw, []byte(p.dir), []byte("/SKILLS"))
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		p.t.Fatalf("%v in %s", err, raw)
	}
	return b.String()
}

// start starts the program and connects to it.
func (p *play) start() {
	p.t.Helper()
	ctx := limited(p.t)
	version := map[string]string{"legacy": legacy, "modern": modern}[strings.TrimSpace(string(part(p.archive, "era").Data))]
	if version == "" {
		p.t.Fatal("the transcript does not say its era")
	}
	c := &wire{t: p.t, ctx: ctx, version: version, in: make(chan message, 1024)}
	flags := []string{"mcp", "--skills", p.dir}
	if p.transport == "http" {
		flags = append(flags, "--http", "127.0.0.1:0", "--json")
	}
	home := p.t.TempDir()
	cmd := exec.CommandContext(ctx, p.program, flags...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		p.t.Fatal(err)
	}
	if p.transport == "http" {
		var greeting struct{ URL string }
		if err := json.NewDecoder(out).Decode(&greeting); err != nil {
			p.t.Fatalf("greeting: %v\n%s", err, stderr.String())
		}
		c.carrier = newHTTPCarrier(ctx, greeting.URL, version, c.in)
	} else {
		c.carrier = newStdioCarrier(in, out, c.in)
	}
	p.client = c
	p.stop = sync.OnceFunc(func() {
		c.carrier.close()
		want := 0
		if p.transport == "http" {
			want = 130
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				p.t.Error(err)
			}
		}
		if err := cmd.Wait(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			p.t.Errorf("loadout mcp ends with %v\n%s", err, stderr.String())
		}
	})
}
