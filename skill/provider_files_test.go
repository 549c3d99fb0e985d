package skill_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/skill"
)

// What the provider of a skill needs and the package does not have is a warning with its
// position in SKILL.md.
func TestMissingProviderFilesAreReported(t *testing.T) {
	const class = "provider:\n  module: provider\n  class: Charts\n"
	const needed = "class Charts:\n    def create_tool(self, name, context, config):\n        "
	for name, test := range map[string]struct {
		frontmatter string
		files       map[string]string
		want        []string // line:column code, and a part of the message
	}{
		"complete":                {class, map[string]string{"provider.py": needed + "from .bar import Bar\n", "bar.py": "from .base import Base", "base.py": ""}, nil},
		"module":                  {class, nil, []string{`5:11 provider-file-missing "provider.py"`}},
		"module in a folder":      {"provider: {module: lib.charts, class: Charts}\n", map[string]string{"lib.py": ""}, []string{`4:20 provider-file-missing "lib/charts.py"`}},
		"package":                 {"provider: {module: lib, class: Charts}\n", map[string]string{"lib/__init__.py": needed + "from .bar import Bar\n", "lib/bar.py": ""}, nil},
		"default module":          {"provider:\n  class: Charts\n", nil, []string{`5:3 provider-file-missing "provider.py"`}},
		"class":                   {class, map[string]string{"provider.py": "class Chart:\n  pass\n# class Charts\n"}, []string{`6:10 provider-class-missing "Charts"`}},
		"class in a string":       {class, map[string]string{"provider.py": "\"\"\"\nclass Charts:\n\"\"\"\n"}, []string{`6:10 provider-class-missing "Charts"`}},
		"class of another file":   {class, map[string]string{"provider.py": "from .a import (\n  One,\n  Charts,\n)\n", "a.py": ""}, nil},
		"assigned class":          {class, map[string]string{"provider.py": "Charts = make()\n"}, nil},
		"dynamic class":           {class, map[string]string{"provider.py": "def __getattr__(name):\n  return make(name)\n"}, nil},
		"tool file":               {class, map[string]string{"provider.py": needed + "from .bar import Bar\n"}, []string{`5:11 provider-import-missing "provider.py" imports "bar.py" in line 3`}},
		"file of a tool file":     {class, map[string]string{"provider.py": needed + "from .bar import Bar\n", "bar.py": "\nfrom .base import (\n  Base)\n"}, []string{`5:11 provider-import-missing "bar.py" imports "base.py" in line 2`}},
		"optional file":           {class, map[string]string{"provider.py": "try:\n    import x\n    from .fast import f\nexcept ImportError:\n    f = None\n" + needed + "return f\n"}, nil},
		"optional, nested":        {class, map[string]string{"provider.py": "try:\n    if FAST:\n        from .fast import f\nexcept ImportError:\n    f = None\n" + needed + "return f\n"}, nil},
		"only for type checkers":  {class, map[string]string{"provider.py": "if typing.TYPE_CHECKING:\n    from .kinds import Kind\n" + needed + "return None\n"}, nil},
		"folder as a namespace":   {class, map[string]string{"provider.py": needed + "from .lib import bar\n", "lib/bar.py": ""}, nil},
		"file outside the skill":  {class, map[string]string{"provider.py": needed + "from ..other import x\n"}, nil},
		"function":                {"entrypoint: skills/charts/main.py\nfunction: draw\n", map[string]string{"main.py": "from .bar import Bar\n", "bar.py": ""}, nil},
		"entrypoint":              {"entrypoint: skills/charts/main.py\nfunction: draw\n", nil, []string{`4:13 provider-file-missing "main.py"`}},
		"file of the entrypoint":  {"entrypoint: main.py\nfunction: draw\n", map[string]string{"main.py": "from .bar import Bar\n"}, []string{`4:13 provider-import-missing "bar.py"`}},
		"WebAssembly":             {"provider:\n  wasm: tools.wasm\n", nil, []string{`5:9 provider-file-missing "tools.wasm"`}},
		"path out of the skill":   {"provider: {wasm: ../tools.wasm}\n", nil, []string{`4:18 provider-file-missing "../tools.wasm"`}},
		"command":                 {"provider:\n  command: [python3, bin/serve.py]\n", nil, []string{`5:12 provider-file-missing "bin/serve.py"`}},
		"executable":              {"provider: {command: ./bin/serve --fast}\n", map[string]string{"bin/serve --fast": ""}, nil},
		"program of the system":   {"provider: {command: [npx, -y, '@charts/server']}\n", nil, nil},
		"flags":                   {"provider: {command: [python3, -m, charts]}\n", nil, nil},
		"under metadata":          {"metadata:\n  provider:\n    class: Charts\n    module: charts.py\n", nil, []string{`7:13 provider-file-missing "charts.py"`}},
		"repaired frontmatter":    {"license: MIT: or so\n" + class, nil, []string{`6:11 provider-file-missing "provider.py"`}},
		"no provider":             {"tools: [{name: bar}]\n", nil, nil},
		"class that is no name":   {"provider: {class: 'a(b'}\n", map[string]string{"provider.py": "class Charts: pass\n"}, []string{`4:19 provider-class-missing "a(b"`}},
		"cycle of imports":        {class, map[string]string{"provider.py": needed + "from .bar import Bar\n", "bar.py": "from .provider import Charts\n"}, nil},
		"name that is no keyword": {class, map[string]string{"provider.py": needed + "pass\nfrom .gone import x\nfrom .gone import y\n"}, []string{`5:11 provider-import-missing "gone.py" in line 4`}},
	} {
		t.Run(name, func(t *testing.T) {
			src := "---\nname: charts\ndescription: Draws charts.\n" + test.frontmatter + "---\n# Do it\n"
			files := fstest.MapFS{"SKILL.md": {Data: []byte(src)}}
			for p, text := range test.files {
				files[p] = &fstest.MapFile{Data: []byte(text)}
			}
			s, ds, err := skill.Parse(files, "charts")
			if err != nil || s == nil || !ds.Loads() {
				t.Fatal(s, ds, err)
			}
			var got []string
			for _, d := range ds {
				if !strings.HasPrefix(d.Code, "provider-") {
					continue
				}
				text := fmt.Sprintf("%d:%d %s", d.Line, d.Column, d.Code)
				for _, want := range test.want {
					if part, ok := strings.CutPrefix(want, text+" "); ok && strings.Contains(d.Message, part) {
						text = want
					}
				}
				if d.Severity != skill.Warning || d.Fix == "" {
					t.Errorf("%v, fix %q: want a warning with a fix", d, d.Fix)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, ds)
			}
		})
	}
}

// A missing class comes with the classes that there are.
func TestMissingProviderClassNamesOthers(t *testing.T) {
	files := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: charts\ndescription: Draws charts.\nprovider: {class: Chart}\n---\n# Do it\n")},
		"provider.py": {Data: []byte("class Charts:\n  pass\nclass Base: pass\n")}}
	_, ds, err := skill.Parse(files, "charts")
	if problems := ds.Problems(); err != nil || len(problems) != 1 || problems[0].Fix != "define the class, or name one that the file has: Charts, Base" {
		t.Error(problems, err)
	}
}

// Dependencies that name Python modules are reported as information, and stay in the list.
func TestPythonModulesAmongDependencies(t *testing.T) {
	s, ds := parse(t, "name: a\ndescription: Does things.\ndependencies:\n  - app.chat_shell.tools.pending_requests\n  - base\n  - other@^1.2\n", "a")
	if diff := cmp.Diff([]string{"app.chat_shell.tools.pending_requests", "base", "other@^1.2"}, s.Dependencies); diff != "" {
		t.Error(diff)
	}
	var found []skill.Diagnostic
	for _, d := range ds {
		if d.Code == "dependency-python-module" {
			found = append(found, d)
		}
	}
	if len(found) != 1 || found[0].Severity != skill.Info || found[0].Line != 5 || !strings.HasSuffix(found[0].Message, ": app.chat_shell.tools.pending_requests") {
		t.Error(ds)
	}
}
