package main

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/release"
)

var date = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Archives of the same files are the same, whatever the times, the modes and the
// path of the files are.
func TestArchivesAreReproducible(t *testing.T) {
	for _, format := range []string{".tar.gz", ".zip"} {
		var archives [2][]byte
		for i := range archives {
			dir := filepath.Join(t.TempDir(), "loadout_1.2.0")
			write(t, filepath.Join(dir, "man", "loadout.1"), "page", 0o600+os.FileMode(i)*0o044)
			write(t, filepath.Join(dir, "loadout"), strings.Repeat("program", 1000), 0o700+os.FileMode(i)*0o055)
			if err := os.Chtimes(filepath.Join(dir, "loadout"), time.Time{}, date.AddDate(i, 0, 0)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "out"+format)
			if err := writeArchive(file, dir, date); err != nil {
				t.Fatal(err)
			}
			var err error
			if archives[i], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(archives[0], archives[1]) {
			t.Errorf("two %s archives of the same files differ", format)
		}
		if format == ".zip" {
			checkZip(t, archives[0])
		}
	}
}

func checkZip(t *testing.T, archive []byte) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]os.FileMode{"loadout_1.2.0/loadout": 0o755, "loadout_1.2.0/man/loadout.1": 0o644}
	for _, f := range r.File {
		if f.Mode() != want[f.Name] || !f.Modified.Equal(date) {
			t.Errorf("%s has the mode %v and the time %v", f.Name, f.Mode(), f.Modified)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestArchiveRefusesSymlinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("elsewhere", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	err := writeArchive(filepath.Join(t.TempDir(), "a.zip"), dir, date)
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}

func TestManifests(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"darwin_amd64.tar.gz", "darwin_arm64.tar.gz", "linux_amd64.tar.gz", "linux_arm64.tar.gz", "windows_amd64.zip", "linux_amd64.deb"} {
		write(t, filepath.Join(dir, "loadout_1.2.0_"+name), name, 0o644)
	}
	earlier := filepath.Join(t.TempDir(), "index.json")
	write(t, earlier, `{"format": 1, "releases": [{"version": "v1.3.0"}, {"version": "v1.1.0"}, {"version": "v1.2.0", "commit": "abc"}]}`, 0o644)
	m := manifests{Tag: "v1.2.0", Commit: "abc", Date: date, BaseURL: "https://example.com/v1.2.0", Index: earlier}
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}

	sum := m.archives["windows/amd64"].SHA256
	installer := read(t, filepath.Join(dir, "winget", "LoadoutDev.Loadout.installer.yaml"))
	for _, line := range []string{`- RelativeFilePath: loadout_1.2.0_windows_amd64\loadout.exe`, "InstallerUrl: https://example.com/v1.2.0/loadout_1.2.0_windows_amd64.zip", "InstallerSha256: " + sum, "ReleaseDate: 2026-03-01"} {
		if !strings.Contains(installer, line+"\n") {
			t.Errorf("no %q in\n%s", line, installer)
		}
	}
	formula := read(t, filepath.Join(dir, "loadout.rb"))
	for platform, f := range m.archives {
		if strings.HasPrefix(platform, "windows/") {
			continue
		}
		if want := "url \"" + f.URL + "\"\n      sha256 \"" + f.SHA256 + "\"\n"; !strings.Contains(formula, want) {
			t.Errorf("the formula has no\n%s", want)
		}
	}
	scoop := read(t, filepath.Join(dir, "scoop", "loadout.json"))
	if !strings.Contains(scoop, `"hash": "`+sum+`"`) || !strings.Contains(scoop, `"extract_dir": "loadout_1.2.0_windows_amd64"`) {
		t.Errorf("Scoop manifest:\n%s", scoop)
	}

	x, err := release.Parse([]byte(read(t, filepath.Join(dir, "index.json"))))
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, r := range x.Releases {
		versions = append(versions, r.Version)
	}
	if got := strings.Join(versions, " "); got != "v1.3.0 v1.2.0 v1.1.0" {
		t.Errorf("the index lists %s", got)
	}
	r := x.Releases[1]
	if f := r.File("linux/amd64"); len(r.Files) != 5 || f == nil || f.URL != "https://example.com/v1.2.0/loadout_1.2.0_linux_amd64.tar.gz" || f.Size != 18 {
		t.Errorf("release %+v", r)
	}

	m.Commit = "def"
	if err := m.write(dir); err == nil || !strings.Contains(err.Error(), "was already released from commit abc") {
		t.Errorf("another commit for the same tag: %v", err)
	}
}

// Manifests are left out if their archives are missing.
func TestManifestsOfOneSystem(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "loadout_1.2.0_linux_amd64.tar.gz"), "archive", 0o644)
	m := manifests{Tag: "v1.2.0", Date: date}
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v; want the archive and the index", entries, err)
	}
	m.Tag = "v1.3.0"
	if err := m.write(dir); err == nil || !strings.Contains(err.Error(), "no archives of version 1.3.0") {
		t.Errorf("without archives: %v", err)
	}
	m.Tag = "1.2.0"
	if err := m.write(dir); err == nil || !strings.Contains(err.Error(), "is not a tag") {
		t.Errorf("without a tag: %v", err)
	}
}

// The SBOM of the page lists what the page ships, and no tool that builds it.
func TestPageSBOM(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.cdx.json")
	if err := writePageSBOM("../../../web/package-lock.json", "v1.2.0", file); err != nil {
		t.Fatal(err)
	}
	text := read(t, file)
	for _, want := range []string{`"purl": "pkg:npm/preact@`, `"purl": "pkg:npm/%40codemirror/view@`, `"alg": "SHA-512"`, `"expression": "MIT"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "pkg:npm/eslint@") {
		t.Error("it lists a tool")
	}
	lock := filepath.Join(t.TempDir(), "package-lock.json")
	for text, want := range map[string]string{
		`{"lockfileVersion": 2}`: "has version 2, want 3",
		`{"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.0.0"}}}`: "no SHA-512 checksum for node_modules/a",
	} {
		write(t, lock, text, 0o644)
		if err := writePageSBOM(lock, "v1.2.0", file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestContainerfile(t *testing.T) {
	if err := checkContainerfile("../../../deploy/Containerfile"); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"FROM a AS b\nCOPY --from=c x y\n": ":2: unknown stage c",
		"FROM a\nRUNN x\n":                 ":2: unknown instruction RUNN",
		"FROM a\nUSER\n":                   ":2: USER needs arguments",
		"USER 1\nFROM a\n":                 ":1: USER before FROM",
		"FROM a\nRUN x \\\n":               "ends inside an instruction",
		"# nothing\n":                      "has no FROM",
	} {
		file := filepath.Join(t.TempDir(), "Containerfile")
		write(t, file, text, 0o644)
		if err := checkContainerfile(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// The script is valid, and refuses what it cannot release before it builds.
func TestScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is missing")
	}
	script, err := filepath.Abs("../../../.ci/release")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bash, "-n", script).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := exec.Command(bash, script).CombinedOutput(); err == nil || !strings.Contains(string(out), "usage:") {
		t.Errorf("without a directory: %v: %s", err, out)
	}
	if out, err := exec.Command(bash, script, t.TempDir()).CombinedOutput(); err == nil || !strings.Contains(string(out), "exists; give a new directory") {
		t.Errorf("with an existing directory: %v: %s", err, out)
	}
}

// Packages contain only files that the script puts into the directory.
func TestPackages(t *testing.T) {
	var config struct {
		Contents []struct{ Src, Dst string }
	}
	load(t, "../../../.ci/nfpm.yaml", &config)
	staged := []string{"loadout", "LICENSE", "man/*.1.gz", "completions/loadout.bash", "completions/loadout.fish", "completions/loadout.zsh"}
	if len(config.Contents) < len(staged) {
		t.Fatalf("contents: %v", config.Contents)
	}
	for _, c := range config.Contents {
		found := false
		for _, s := range staged {
			found = found || c.Src == s
		}
		if !found || !strings.HasPrefix(c.Dst, "/usr/") {
			t.Errorf("%s is installed as %s", c.Src, c.Dst)
		}
	}
}

func write(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func load(t *testing.T, file string, v any) {
	t.Helper()
	if err := yaml.Load([]byte(read(t, file)), v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
