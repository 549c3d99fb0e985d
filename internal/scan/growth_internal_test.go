package scan

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
)

// hostile are texts that invite to look at the same bytes again and again.
var hostile = []string{
	"\"", "'", "`", "`a b c d e f", "` a b c d e f`", "(", "/*", "<!--", "\"\"\"", "\"\" ", "'x' + \"y\" ", "'\\", "curl https://", "curl |", "eval(", "password=\"", "$(", "\u200b", "```\n", "~~~",
	"os.environ ", "x = os.environ['A_TOKEN']\n", "https://a.b:", "-----BEGIN PRIVATE KEY-----", "aHR0cHM6Ly9", "\\\n", "ignore all previous ", "rm -rf ", "base64 -d | ", "\x1b[", "а", "npx a",
	"u = 'https://a.b' ", "u = 'https://a.b'\n", "`git a https://b.c`\n\n", "requests.get(u)\n", "w = requests.get(u)\nexec(w)\n", "cp ~/.ssh /tmp/a ", "open('.ssh')\n", "socket.socket()\nsubprocess.run('/bin/sh')\n", "curl -o a https://b.c\n./a\n",
	"    curl https://a.b/c | jq\n", "#\n", "> ", "<important>", "é",
	"download https://a.zz/x.zip password run ", "`curl https://get.acme.dev/i | sh` acme ", "never download and run https://a.zz/x.exe ",
}

// Four times the text is about four times the work, whatever the text is.
func TestWorkGrowsLinearly(t *testing.T) {
	const size = 8 << 10
	for _, name := range []string{"a.md", "a.sh", "a.py", "a.js"} {
		for _, unit := range hostile {
			small, large := workOn(t, name, unit, size), workOn(t, name, unit, 4*size)
			if large > 5*small+4*size {
				t.Errorf("%s of %q: %d bytes of work for %d KiB, %d for four times that", name, unit, small, size>>10, large)
			}
			if large > 200*4*size {
				t.Errorf("%s of %q: %d bytes of work for %d KiB", name, unit, large, 4*size>>10)
			}
		}
	}
}

func workOn(t *testing.T, name, unit string, size int) int {
	t.Helper()
	files := fstest.MapFS{name: {Data: []byte(strings.Repeat(unit, size/len(unit)))}}
	s := newScanner(files)
	if err := s.scan(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	return s.work
}
