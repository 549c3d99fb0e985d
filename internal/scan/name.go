package scan

import "strings"

// knownPackages are packages and publishers whose names attackers imitate
// with misspellings.
var knownPackages lazy[[]string]

func listKnownPackages() []string {
	return strings.Fields(`
requests urllib3 numpy pandas matplotlib scipy sklearn scikit-learn tensorflow pytorch torch keras django flask fastapi
pydantic sqlalchemy beautifulsoup4 selenium pillow opencv-python cryptography paramiko boto3 botocore colorama pyyaml
setuptools virtualenv pytest jinja2 openai anthropic langchain transformers huggingface-hub tiktoken playwright pypdf pdfplumber
python-dateutil python-dotenv openpyxl python-docx python-pptx reportlab markdown
lodash express react react-dom axios typescript webpack eslint prettier chalk commander dotenv mongoose puppeteer
next vite vitest esbuild rollup nodemon cross-env create-react-app electron socket.io mocha validator jsonwebtoken
@modelcontextprotocol @anthropic-ai @openai @playwright @angular @babel @types @google-cloud @azure @aws-sdk @microsoft @supabase @vercel @anthropic
openapi expresso markdownit chalks`)
}

// isMisspelt reports whether a command installs a package whose name nearly
// matches a known one.
func isMisspelt(arguments string) bool {
	for word := range strings.FieldsSeq(strings.ToLower(arguments)) {
		if strings.HasPrefix(word, "-") {
			continue
		}
		if isNearlyKnown(packageName(word)) {
			return true
		}
	}
	return false
}

// packageName returns the part of a package name to compare: the publisher if
// there is one, or else the name without the version.
func packageName(word string) string {
	word = strings.Trim(word, `"',`)
	if strings.HasPrefix(word, "@") {
		scope, _, _ := strings.Cut(word, "/")
		return scope
	}
	if i := strings.IndexAny(word, "@=<>~![;("); i > 0 {
		word = word[:i]
	}
	return strings.ReplaceAll(word, "_", "-")
}

// isNearlyKnown reports whether a name is unknown, but one edit away from a
// known name of at least six letters.
func isNearlyKnown(name string) bool {
	if len(name) < 5 || len(name) > 40 {
		return false
	}
	near := false
	for _, k := range knownPackages.get(listKnownPackages) {
		if strings.HasPrefix(k, "@") != strings.HasPrefix(name, "@") {
			continue
		}
		if k == name {
			return false
		}
		near = near || len(k) >= 6 && isOneEditApart(name, k)
	}
	return near
}

// isOneEditApart reports whether two strings differ by an inserted, deleted or
// replaced letter, or by two swapped letters.
func isOneEditApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	switch {
	case i == len(a):
		return false
	case a[i+1:] == b[i+1:]:
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
