package signature_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/mod/sumdb/note"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/signature"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keys makes a pair of keys.
func keys(t testing.TB, name string) (private, public string) {
	t.Helper()
	private, public, err := signature.GenerateKey(name)
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

func manifest(t testing.TB, fsys fs.FS) skill.Manifest {
	t.Helper()
	m, _, err := skill.ReadManifest(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sign(t testing.TB, m skill.Manifest, name, private string) []byte {
	t.Helper()
	sig, err := signature.Sign(m, name, private, signature.Release{})
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

// pdf is a skill of three files.
func pdf() fstest.MapFS {
	return fstest.MapFS{
		"SKILL.md":        {Data: []byte("---\nname: pdf\ndescription: Reads PDF files.\n---\nRun scripts/read.py.\n")},
		"scripts/read.py": {Data: []byte("print('read')\n")},
		"notes/größe.md":  {Data: []byte("sizes\n")},
	}
}

func TestSignedSkillVerifies(t *testing.T) {
	private, public := keys(t, "example.com/tools")
	fsys := pdf()
	sig := sign(t, manifest(t, fsys), "pdf", private)
	for _, name := range []string{"before it has the file of its signature", "with it", "signed again"} {
		if err := signature.Verify(manifest(t, fsys), "pdf", sig, public); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		fsys[signature.FileName] = &fstest.MapFile{Data: sig}
		if again := sign(t, manifest(t, fsys), "pdf", private); !bytes.Equal(again, sig) {
			t.Errorf("%s: the same files are signed otherwise:\n%s", name, again)
		}
	}

	s, err := signature.Parse(sig)
	if err != nil {
		t.Fatal(err)
	}
	want := &signature.Signature{Name: "pdf", Key: public}
	for _, f := range manifest(t, pdf()) {
		want.Files = append(want.Files, skill.File{Path: f.Path, SHA256: f.SHA256})
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("Read (-want +got):\n%s", d)
	}
	if !strings.HasPrefix(string(sig), "loadout skill signature v1\nname pdf\nkey "+public+"\n") {
		t.Errorf("the signature begins otherwise:\n%s", sig)
	}
}

// A signature with a counter has another first line, which earlier programs
// refuse by name. Its counter and time have one spelling.
func TestCounters(t *testing.T) {
	private, public := keys(t, "example.com/tools")
	m := manifest(t, pdf())
	when := time.Date(2026, 11, 23, 20, 15, 30, 99, time.FixedZone("", 3600))
	sig, err := signature.Sign(m, "pdf", private, signature.Release{Counter: 7, Time: when})
	if err != nil {
		t.Fatal(err)
	}
	if want := "loadout skill signature v2\nname pdf\nkey " + public + "\ncounter 7\ntime 2026-11-23T19:15:30Z\n"; !strings.HasPrefix(string(sig), want) {
		t.Errorf("the signature begins otherwise:\n%s", sig)
	}
	if err := signature.Verify(m, "pdf", sig, public); err != nil {
		t.Error(err)
	}
	s, err := signature.Parse(sig)
	if err != nil {
		t.Fatal(err)
	}
	if want := (signature.Release{Counter: 7, Time: when.UTC().Truncate(time.Second)}); s.Release != want {
		t.Errorf("release %+v, want %+v", s.Release, want)
	}
	if next := s.Next(when); next.Counter != 8 || !next.Time.Equal(s.Time) {
		t.Errorf("next %+v", next)
	}

	text := string(sig)[:strings.LastIndex(string(sig), "\n\n")+1]
	for _, test := range []struct{ old, new string }{
		{"counter 7", "counter 0"}, {"counter 7", "counter 07"}, {"counter 7", "counter +7"}, {"counter 7", "counter 9007199254740992"},
		{"counter 7", "counter 99999999999999999999"}, {"counter 7\n", ""}, {"time 2026-11-23T19:15:30Z\n", ""},
		{"T19:15:30Z", "T19:15:30+00:00"}, {"T19:15:30Z", "T19:15:30.5Z"}, {"2026-11-23", "2026-11-31"}, {"2026-11-23", "1969-11-23"},
		{"signature v2", "signature v1"}, {"signature v2", "signature v3"},
	} {
		bad := resign(t, strings.Replace(text, test.old, test.new, 1), private)
		if _, ok := errors.AsType[*signature.DamagedError](signature.Verify(m, "pdf", bad, public)); !ok {
			t.Errorf("%q is accepted", test.new)
		}
	}
	for _, r := range []signature.Release{{Counter: 1}, {Time: when}, {Counter: signature.MaxCounter + 1, Time: when}} {
		if _, err := signature.Sign(m, "pdf", private, r); err == nil {
			t.Errorf("%+v is signed", r)
		}
	}
}

func TestChangedFilesAreReported(t *testing.T) {
	private, public := keys(t, "example.com/tools")
	sig := sign(t, manifest(t, pdf()), "pdf", private)
	for _, test := range []struct {
		name   string
		change func(fstest.MapFS)
		want   signature.MismatchError
	}{
		{"a byte flipped", func(f fstest.MapFS) { f["scripts/read.py"].Data[0] ^= 1 },
			signature.MismatchError{Changed: []string{"scripts/read.py"}}},
		{"a file added", func(f fstest.MapFS) { f["scripts/more.py"] = &fstest.MapFile{} },
			signature.MismatchError{Added: []string{"scripts/more.py"}}},
		{"a file added at the end", func(f fstest.MapFS) { f["z"] = &fstest.MapFile{} },
			signature.MismatchError{Added: []string{"z"}}},
		{"a file removed", func(f fstest.MapFS) { delete(f, "scripts/read.py") },
			signature.MismatchError{Missing: []string{"scripts/read.py"}}},
		{"the first file removed", func(f fstest.MapFS) { delete(f, "SKILL.md") },
			signature.MismatchError{Missing: []string{"SKILL.md"}}},
		{"a file renamed", func(f fstest.MapFS) {
			f["scripts/run.py"] = f["scripts/read.py"]
			delete(f, "scripts/read.py")
		}, signature.MismatchError{Missing: []string{"scripts/read.py"}, Added: []string{"scripts/run.py"}}},
		{"two files exchanged", func(f fstest.MapFS) {
			f["SKILL.md"], f["scripts/read.py"] = f["scripts/read.py"], f["SKILL.md"]
		}, signature.MismatchError{Changed: []string{"SKILL.md", "scripts/read.py"}}},
		{"all of it", func(f fstest.MapFS) { clear(f); f["x"] = &fstest.MapFile{} },
			signature.MismatchError{Missing: []string{"SKILL.md", "notes/größe.md", "scripts/read.py"}, Added: []string{"x"}}},
		{"a signature of another name is a file like others", func(f fstest.MapFS) { f["scripts/SKILL.sig"] = &fstest.MapFile{} },
			signature.MismatchError{Added: []string{"scripts/SKILL.sig"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fsys := pdf()
			test.change(fsys)
			err := signature.Verify(manifest(t, fsys), "pdf", sig, public)
			got, ok := errors.AsType[*signature.MismatchError](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			test.want.Name, test.want.SignedName = "pdf", "pdf"
			if d := cmp.Diff(&test.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			for _, p := range slices.Concat(got.Changed, got.Missing, got.Added) {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("%q does not name %s", err, p)
				}
			}
		})
	}
}

// A signature copied from another skill holds for its files, not for the name.
func TestSignatureOfAnotherSkill(t *testing.T) {
	private, public := keys(t, "example.com/tools")
	m := manifest(t, pdf())
	err := signature.Verify(m, "pdf", sign(t, m, "docx", private), public)
	if got, ok := errors.AsType[*signature.MismatchError](err); !ok || got.SignedName != "docx" || got.Name != "pdf" || len(got.Changed)+len(got.Missing)+len(got.Added) > 0 {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(err.Error(), `for the skill "docx"`) {
		t.Errorf("%q does not say what it is for", err)
	}
}

func TestAnotherKey(t *testing.T) {
	m := manifest(t, pdf())
	private, public := keys(t, "example.com/tools")
	_, other := keys(t, "example.com/tools") // the same name
	err := signature.Verify(m, "pdf", sign(t, m, "pdf", private), other)
	got, ok := errors.AsType[*signature.KeyError](err)
	if !ok || *got != (signature.KeyError{SignedBy: public, Expected: other}) {
		t.Fatalf("error %v", err)
	}
	for _, k := range []string{public, other} {
		if !strings.Contains(err.Error(), signature.Fingerprint(k)) {
			t.Errorf("%q has no fingerprint of %s", err, k)
		}
	}
}

func TestNoSignature(t *testing.T) {
	_, public := keys(t, "example.com/tools")
	if err := signature.Verify(manifest(t, pdf()), "pdf", nil, public); !errors.Is(err, signature.ErrUnsigned) {
		t.Errorf("Verify: %v", err)
	}
	if _, err := signature.Parse([]byte{}); !errors.Is(err, signature.ErrUnsigned) {
		t.Errorf("Read: %v", err)
	}
}

// resign signs any text with a foreign key.
func resign(t *testing.T, text string, private ...string) []byte {
	t.Helper()
	var signers []note.Signer
	for _, p := range private {
		s, err := note.NewSigner(p)
		if err != nil {
			t.Fatal(err)
		}
		signers = append(signers, s)
	}
	out, err := note.Sign(&note.Note{Text: text}, signers...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDamagedSignatures(t *testing.T) {
	private, public := keys(t, "example.com/tools")
	stranger, strangers := keys(t, "example.com/stranger")
	m := manifest(t, pdf())
	good := string(sign(t, m, "pdf", private))
	text := good[:strings.LastIndex(good, "\n\n")+1]
	replaced := func(old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in it", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	lines := strings.SplitAfter(text, "\n")
	for _, test := range []struct {
		name string
		sig  []byte
	}{
		{"two signatures", resign(t, text, private, stranger)},
		{"two signatures, the other one first", resign(t, text, stranger, private)},
		{"the same signature twice", []byte(good + good[strings.LastIndex(good, "— "):])},
		{"signed by a stranger, with our key line", resign(t, text, stranger)},
		{"a key line of a stranger, signed by us", resign(t, replaced(public, strangers), private)},
		{"a key line that is changed afterwards", []byte(strings.Replace(good, public, strangers, 1))},
		{"a name that is changed afterwards", []byte(strings.Replace(good, "name pdf", "name PDF", 1))},
		{"a hash that is changed afterwards", []byte(strings.Replace(good, m[0].SHA256, skillfile.Hash(nil), 1))},
		{"a path that is changed afterwards", []byte(strings.Replace(good, "read.py", "load.py", 1))},
		{"an unknown version", resign(t, replaced("signature v1", "signature v3"), private)},
		{"no heading", resign(t, strings.Join(lines[1:], ""), private)},
		{"CRLF", []byte(strings.ReplaceAll(good, "\n", "\r\n"))},
		{"a byte order mark", []byte("\ufeff" + good)},
		{"something behind it", []byte(good + "\n")},
		{"something before it", []byte("\n" + good)},
		{"cut off", []byte(good[:len(good)-1])},
		{"the signature alone", []byte(good[strings.LastIndex(good, "\n\n")+2:])},
		{"the text alone", []byte(text)},
		{"no file", resign(t, strings.Join(lines[:3], ""), private)},
		{"the name alone", resign(t, strings.Join(lines[:2], ""), private)},
		{"the name and the key exchanged", resign(t, lines[0]+lines[2]+lines[1]+lines[3], private)},
		{"files out of order", resign(t, strings.Join(lines[:3], "")+lines[4]+lines[3], private)},
		{"a file twice", resign(t, strings.Join(lines[:3], "")+lines[3]+lines[3], private)},
		{"an empty line", resign(t, text+"\n", private)},
		{"a hash in capitals", resign(t, replaced(m[0].SHA256, strings.ToUpper(m[0].SHA256)), private)},
		{"a path that leaves the skill", resign(t, replaced("scripts/read.py", "../read.py"), private)},
		{"its own path", resign(t, replaced("SKILL.md", signature.FileName), private)},
		{"more than is read", slices.Concat([]byte(good), make([]byte, signature.MaxBytes))},
		{"no text", []byte("\xff\xfe")},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := signature.Verify(m, "pdf", test.sig, public)
			_, damaged := errors.AsType[*signature.DamagedError](err)
			_, key := errors.AsType[*signature.KeyError](err)
			if !damaged && (!key || !strings.HasPrefix(test.name, "a key line that is changed")) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Base64 has several spellings of the same bytes; only the one of Sign counts, so
// that no byte of a signature can be changed.
func TestEveryByteOfSignatureIsChecked(t *testing.T) {
	private, public := keys(t, "k")
	m := manifest(t, fstest.MapFS{"SKILL.md": {Data: []byte("x")}})
	good := sign(t, m, "x", private)
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			if err := signature.Verify(m, "x", bad, public); err == nil {
				t.Errorf("byte %d, bit %d: accepted\n%s", i, bit, bad)
			}
		}
	}
}

func TestUnsignableSkills(t *testing.T) {
	private, public := keys(t, "example.com/tools")
	hash := skillfile.Hash(nil)
	files := func(paths ...string) (m skill.Manifest) {
		for _, p := range paths {
			m = append(m, skill.File{Path: p, SHA256: hash})
		}
		return m
	}
	many := make([]string, 12_000)
	for i := range many {
		many[i] = fmt.Sprintf("scripts/a-file-with-a-name-%d", i)
	}
	for _, test := range []struct {
		name      string
		files     skill.Manifest
		skillName string
		private   string
	}{
		{"a line end in a path", files("a\nb"), "x", private},
		{"a control character in a path", files("a\x1bb"), "x", private},
		{"a delete character in a path", files("a\x7fb"), "x", private},
		{"a path that is no text", files("a\xff"), "x", private},
		{"a path that leaves the skill", files("../a"), "x", private},
		{"an absolute path", files("/a"), "x", private},
		{"a file twice", files("a", "a"), "x", private},
		{"no hash", skill.Manifest{{Path: "a"}}, "x", private},
		{"no file", nil, "x", private},
		{"no file but a signature", files(signature.FileName), "x", private},
		{"a line end in the name", files("a"), "x\nkey y", private},
		{"no name", files("a"), "", private},
		{"a long name", files("a"), strings.Repeat("x", 257), private},
		{"too many files", files(many...), "x", private},
		{"a public key", files("a"), "x", public},
		{"no key", files("a"), "x", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			sig, err := signature.Sign(test.files, test.skillName, test.private, signature.Release{})
			if err == nil {
				t.Fatalf("signed:\n%.1000s", sig)
			}
			if strings.ContainsAny(err.Error(), "\n\x1b\x7f") || strings.Contains(err.Error(), private) {
				t.Errorf("error %q", err)
			}
		})
	}
}

// Whatever the files are, a signature of them holds for them and for nothing else.
func TestSignaturesCoverTheirFilesOnly(t *testing.T) {
	private, public := keys(t, "example.com/tools")
	path := rapid.StringMatching(`[a-zA-Z0-9 ä日_.-]{1,12}(/[a-z0-9 .]{1,8})?`).Filter(func(s string) bool {
		return fs.ValidPath(s) && s != signature.FileName
	})
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.MapOfN(path, rapid.SliceOfN(rapid.Byte(), 0, 8), 1, 12).Draw(t, "files")
		var m skill.Manifest
		for _, p := range slices.Sorted(maps.Keys(files)) {
			m = append(m, skill.File{Path: p, SHA256: skillfile.Hash(files[p])})
		}
		name := rapid.StringMatching(`[a-z ü-]{1,20}`).Draw(t, "name")
		sig, err := signature.Sign(m, name, private, signature.Release{})
		if err != nil {
			t.Fatal(err)
		}
		if err := signature.Verify(m, name, sig, public); err != nil {
			t.Fatalf("it does not hold: %v\n%s", err, sig)
		}
		changed := slices.Clone(m)
		i := rapid.IntRange(0, len(m)-1).Draw(t, "file")
		want := signature.MismatchError{Name: name, SignedName: name}
		switch rapid.IntRange(0, 2).Draw(t, "change") {
		case 0:
			changed[i].SHA256 = skillfile.Hash([]byte("something longer than the files are"))
			want.Changed = []string{m[i].Path}
		case 1:
			changed = slices.Delete(changed, i, i+1)
			want.Missing = []string{m[i].Path}
		case 2:
			changed[i].Path += "~"
			want.Missing, want.Added = []string{m[i].Path}, []string{changed[i].Path}
		}
		got, ok := errors.AsType[*signature.MismatchError](signature.Verify(changed, name, sig, public))
		if !ok || cmp.Diff(&want, got) != "" {
			t.Fatalf("got %v, want %v", got, &want)
		}
	})
}

func FuzzRead(f *testing.F) {
	private, public, err := signature.GenerateKey("example.com/tools")
	if err != nil {
		f.Fatal(err)
	}
	m := manifest(f, pdf())
	good := sign(f, m, "pdf", private)
	f.Add(good)
	all, _ := chain(f)
	_, rotated := signed(f, all[2], signature.Release{Counter: 3, Time: year(3)})
	f.Add(rotated)
	f.Add([]byte("loadout skill signature v1\nname x\nkey k+00000000+AAAA\n\n— k AAAAAAAA\n"))
	f.Add(bytes.ReplaceAll(good, []byte("\n"), []byte("\n\n")))
	f.Fuzz(func(t *testing.T, sig []byte) {
		s, err := signature.Parse(sig)
		if (err == nil) == (s == nil) {
			t.Fatalf("both or none of %v and %v", s, err)
		}
		if err == nil {
			if len(s.Files) == 0 || !slices.IsSortedFunc(s.Files, func(a, b skill.File) int { return strings.Compare(a.Path, b.Path) }) || signature.KeyName(s.Key) == "" {
				t.Errorf("accepted: %+v", s)
			}
		}
		if err := signature.Verify(m, "pdf", sig, public); err == nil && !bytes.Equal(sig, good) {
			t.Errorf("verified, and is not what was signed:\n%s", sig)
		}
	})
}
