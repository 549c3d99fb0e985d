package skill_test

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the codes of diagnostics into testdata")

// The codes of diagnostics are in testdata/codes.json, as the source has them: the page has a
// Chinese text for each.
func TestCodes(t *testing.T) {
	found := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, code := range codesOf(n) {
				found[code] = true
			}
			return true
		})
	}
	var codes []string
	for code := range found {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	is, err := json.MarshalIndent(codes, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	is = append(is, '\n')
	const golden = "testdata/codes.json"
	if *update {
		if err := os.WriteFile(golden, is, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(is) != string(want) {
		t.Errorf("%s differs from the source: go test ./skill -run Codes -update; it is to be\n%s", golden, is)
	}
}

// codesOf returns the codes that a piece of source gives to diagnostics: in literals,
// calls, field assignments and constants.
func codesOf(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if of, ok := n.Type.(*ast.Ident); ok && of.Name == "Diagnostic" {
			return codeTexts(n.Elts)
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"add", "report", "fallbackName"}, f.Sel.Name) {
			return codeTexts(n.Args)
		}
	case *ast.AssignStmt:
		if f, ok := n.Lhs[0].(*ast.SelectorExpr); ok && f.Sel.Name == "Code" {
			return codeTexts(n.Rhs[:1])
		}
	case *ast.ValueSpec:
		if n.Names[0].Name == "code" && len(n.Values) > 0 {
			return codeTexts(n.Values[:1])
		}
	}
	return nil
}

var codeForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)

func codeTexts(all []ast.Expr) []string {
	var out []string
	for _, e := range all {
		if field, ok := e.(*ast.KeyValueExpr); ok {
			e = field.Value
		}
		text, ok := e.(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			continue
		}
		if s, err := strconv.Unquote(text.Value); err == nil && codeForm.MatchString(s) {
			out = append(out, s)
		}
	}
	return out
}
