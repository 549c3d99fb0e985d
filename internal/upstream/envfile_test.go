package upstream_test

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// withFiles returns the user's variables with env files, and the files that were read.
func withFiles(files map[string]string) (v upstream.Variables, read *[]string) {
	v, read = userVariables, &[]string{}
	v.File = func(path string) ([]byte, error) {
		*read = append(*read, path)
		text, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
	return v, read
}

// Values in env override those of the file, whatever their order.
func TestEnvFile(t *testing.T) {
	v, _ := withFiles(map[string]string{
		"/work/project/.env":     "TOKEN=s3cr3t-file\nHOST=file.example\nPLAIN=${A}\n",
		"/home/wei/notes/a.env":  "TOKEN=home\n",
		"/work/project/conf/env": "TOKEN=conf\n",
		"/work/project/empty":    "",
	})
	for file, want := range map[string]map[string]string{
		"${workspaceFolder}/.env": {"TOKEN": "s3cr3t-file", "HOST": "own", "PLAIN": "${A}"},
		".env":                    {"TOKEN": "s3cr3t-file", "HOST": "own", "PLAIN": "${A}"},
		"${userHome}/notes/a.env": {"TOKEN": "home", "HOST": "own"},
		"conf/env":                {"TOKEN": "conf", "HOST": "own"},
		"empty":                   {"HOST": "own"},
	} {
		c := &upstream.Config{Name: "x", Type: upstream.Stdio, Command: "run", Env: map[string]string{"HOST": "own"}, EnvFile: file}
		got, unset := c.Resolve(v)
		if len(unset) > 0 {
			t.Errorf("%s: %v", file, unset)
			continue
		}
		if diff := cmp.Diff(want, got.Env); diff != "" || got.EnvFile != "" || got.Digest() != c.Digest() {
			t.Errorf("%s: %q %s", file, got.EnvFile, diff)
		}
		if len(c.Env) != 1 || c.EnvFile != file {
			t.Errorf("%s: the original was changed", file)
		}
	}
}

// A server whose file cannot be had is not configured, and says which file.
func TestEnvFileMissing(t *testing.T) {
	v, _ := withFiles(map[string]string{"/work/project/big": strings.Repeat("A=b\n", upstream.MaxEnvFile/4) + "\n", "/work/project/nul": "A=\x00secret"})
	nowhere := v
	nowhere.Workspace = ""
	noFiles := v
	noFiles.File = nil
	for _, tt := range []struct {
		v          upstream.Variables
		file, want string
	}{
		{v, "gone/.env", "/work/project/gone/.env: file does not exist"},
		{v, "big", "limit 65536 bytes"},
		{v, "nul", "the value of A contains a control character"},
		{v, "${NO}/.env", "no value for ${NO}"},
		{v, "/etc/${{secrets.S3}}", "no value for ${{secrets.S3}}"},
		{nowhere, ".env", "no workspace"},
		{noFiles, ".env", "envFile is allowed only in the user's own configuration"},
	} {
		c := &upstream.Config{Name: "x", Type: upstream.Stdio, Command: "run", EnvFile: tt.file}
		got, unset := c.Resolve(tt.v)
		if got != nil || len(unset) != 1 || !strings.Contains(unset[0].String(), tt.want) || !strings.Contains(unset[0].String(), "envFile ") || strings.Contains(unset[0].String(), "secret\x00") {
			t.Errorf("%s: %v, want %s", tt.file, unset, tt.want)
		}
	}
	// a value in the path is not to be seen
	v.Secret = from(map[string]string{"DIR": "s3cr3t-dir"})
	_, unset := (&upstream.Config{Name: "x", Command: "run", EnvFile: "/${{secrets.DIR}}/.env"}).Resolve(v)
	if len(unset) != 1 || strings.Contains(unset[0].String(), "s3cr3t") || !strings.Contains(unset[0].String(), "/${{secrets.DIR}}/.env: file does not exist") {
		t.Errorf("%v", unset)
	}
}

// Configuration of others cannot make us read a file.
func TestForeignEnvFile(t *testing.T) {
	for _, owner := range []string{"pdf@sha256:0", "project", "hub"} {
		v, read := withFiles(map[string]string{"/work/project/.env": "TOKEN=s3cr3t"})
		c := &upstream.Config{Name: "x", Type: upstream.Stdio, Command: "run", EnvFile: "${workspaceFolder}/.env", Owner: upstream.Owner(owner)}
		if got, unset := c.Resolve(v); got != nil || len(unset) != 1 || unset[0].Kind != upstream.Invalid || !strings.Contains(unset[0].String(), "set the variables in env") {
			t.Errorf("%s: %v %v", owner, got, unset)
		}
		if len(*read) > 0 {
			t.Errorf("%s: %v was read", owner, *read)
		}
	}
}

// A file that changes with the workspace does not choose which code is loaded.
func TestWorkspaceEnvFileSetsNoLoaderVariables(t *testing.T) {
	for _, name := range []string{"LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONSTARTUP", "RUBYOPT", "PERL5LIB", "BASH_ENV", "ENV", "PATH", "Path", "GIT_SSH_COMMAND", "npm_config_registry", "UV_INDEX_URL"} {
		text := "TOKEN=x\n" + name + "=s3cr3t\n"
		v, _ := withFiles(map[string]string{"/work/project/.env": text, "/home/wei/.env": text})
		for file, want := range map[string]bool{".env": false, "${workspaceFolder}/.env": false, "${userHome}/.env": true} {
			c := &upstream.Config{Name: "x", Type: upstream.Stdio, Command: "run", EnvFile: file}
			got, unset := c.Resolve(v)
			if (got != nil) != want {
				t.Errorf("%s in %s: %v", name, file, unset)
			}
			if !want && (len(unset) != 1 || !strings.Contains(unset[0].String(), name+" determines which code is loaded") || strings.Contains(unset[0].String(), "s3cr3t")) {
				t.Errorf("%s in %s: %v", name, file, unset)
			}
		}
		if upstream.CheckEnvFile([]byte(text)) == nil {
			t.Errorf("%s is let through", name)
		}
	}
	if err := upstream.CheckEnvFile([]byte("TOKEN=x\nMY_PATH=y\nENVIRONMENT=z\nGITHUB_TOKEN=g\nNODE=1\n")); err != nil {
		t.Error(err)
	}
}

// The reason for ignoring a file names it as the configuration does.
func TestIgnoredEnvFile(t *testing.T) {
	v := userVariables
	v.File = func(string) ([]byte, error) { return nil, &upstream.EnvFileError{Reason: "nobody trusts it; move it"} }
	_, unset := (&upstream.Config{Name: "x", Command: "run", EnvFile: ".env"}).Resolve(v)
	if len(unset) != 1 || !strings.HasSuffix(unset[0].String(), "/work/project/.env: nobody trusts it; move it") {
		t.Errorf("%v", unset)
	}
}

func TestEnvFileForms(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"A=b":                                  {"A": "b"},
		"\ufeffA=b\r\nC = d \r\n":              {"A": "b", "C": "d"},
		"# comment\n\n  A=b # comment\nC=d#e":  {"A": "b", "C": "d#e"},
		"export A=b\nexport\tB=c\nexportC=d":   {"A": "b", "B": "c", "exportC": "d"},
		`A="b # c" # d`:                        {"A": "b # c"},
		`A='b\n$C'`:                            {"A": `b\n$C`},
		`A="b\n\"c\"\\\x"`:                     {"A": "b\n\"c\"\\\\x"},
		"A=\"b\nB=c\"\nC=d":                    {"A": "b\nB=c", "C": "d"},
		"A=\"b\nC=d":                           {"A": `"b`, "C": "d"},
		"A=\nB=\"\"\nC=# none\nD= # none":      {"A": "", "B": "", "C": "# none", "D": ""},
		"A=b=c==":                              {"A": "b=c=="},
		"A=1\nA=2":                             {"A": "2"},
		"no line\n=x\n1A=b\nA B=c\nA-B=c\n;A=": {},
	} {
		v, _ := withFiles(map[string]string{"/work/project/f": text})
		got, unset := (&upstream.Config{Name: "x", Command: "run", EnvFile: "f"}).Resolve(v)
		if len(unset) > 0 {
			t.Errorf("%q: %v", text, unset)
			continue
		}
		if diff := cmp.Diff(want, got.Env); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// What was read, written in quotes, is read as the same; all of it was in the file.
func FuzzEnvFile(f *testing.F) {
	for _, s := range []string{"A=b\n", "export A='b' # c\n", "A=\"b\\n\\\"\\\\\n\"\nB=c", "A=\"", "=\n\"", "\ufeffA=\r\n\r"} {
		f.Add(s)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "$", `\$`)
	read := func(t *testing.T, text string) map[string]string {
		v, _ := withFiles(map[string]string{"/work/project/f": text})
		got, unset := (&upstream.Config{Name: "x", Command: "run", EnvFile: "f"}).Resolve(v)
		if len(unset) > 0 {
			if len(text) <= upstream.MaxEnvFile && !strings.ContainsRune(text, 0) {
				t.Fatal(unset)
			}
			t.Skip(errors.New("too large, or with a NUL"))
		}
		return got.Env
	}
	f.Fuzz(func(t *testing.T, text string) {
		first := read(t, text)
		var again strings.Builder
		size := 0
		for name, value := range first {
			if !strings.Contains(text, name) {
				t.Errorf("%q is not in %q", name, text)
			}
			size += len(name) + len(value)
			again.WriteString("export " + name + `="` + quote.Replace(value) + "\"\n")
		}
		if size > len(text) {
			t.Errorf("%d bytes of %d", size, len(text))
		}
		if second := read(t, again.String()); !maps.Equal(first, second) {
			t.Errorf("%q became %q", first, second)
		}
	})
}
