package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// largeServer answers each call with a text of 10 MB, as it is written in the file text.
const largeServer = `import json, sys
text = open(sys.argv[1]).read().strip()
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    answer = {
        "initialize": '{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "large", "version": "1"}}',
        "tools/list": '{"tools": [{"name": "blob", "description": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}',
        "tools/call": '{"content": [{"type": "text", "text": ' + text + '}]}',
    }.get(m["method"], "{}")
    print('{"jsonrpc": "2.0", "id": %s, "result": %s}' % (json.dumps(m["id"]), answer), flush=True)
`

// A large result of another server reaches the client as the server has written it,
// and its memory is given back afterwards. When results were decoded and encoded
// again, the escapes differed, and the process kept 340 MB.
func TestLargeResultIsForwardedAndReleased(t *testing.T) {
	home := t.TempDir()
	line := `\u0061\/caf\u00e9 \"quoted\"\n` // each escape could be written in another way
	text := `"` + strings.Repeat(line, 10_000_000/len(line)) + `"`
	for name, content := range map[string]string{"server.py": largeServer, "text": text,
		"mcp.json": fmt.Sprintf(`{"mcpServers": {"large": {"command": "python3", "args": [%q, %q]}}}`, home+"/server.py", home+"/text")} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := plainCommand()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "mcp", "--skills", t.TempDir(), "--mcp-config", filepath.Join(home, "mcp.json"))
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME=", "LOADOUT_CACHE=", "LOADOUT_STATE=", "LOADOUT_CONFIG=")
	in, out := startPiped(t, cmd)
	request := func(id int, message string) []byte {
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			t.Fatal(err)
		}
		for {
			answer, err := out.ReadBytes('\n')
			if err != nil {
				t.Fatalf("no answer to %s: %v", message, err)
			}
			var head struct{ ID *int }
			if json.Unmarshal(answer, &head) == nil && head.ID != nil && *head.ID == id {
				return answer
			}
		}
	}
	request(1, initialize)
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for id := 2; id < 8; id++ {
		answer := request(id, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"large__blob","arguments":{}}}}`, id))
		if !bytes.Contains(answer, []byte(text)) {
			t.Fatalf("call %d: the text is not what the server sent: %.300s", id, answer)
		}
	}
	const most = 120 << 20
	eventually(t, "less than 120 MB resident", func() bool { return residentMemory(t, cmd.Process.Pid) < most })
}

func startPiped(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, *bufio.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return in, bufio.NewReader(out)
}

// residentMemory returns the resident memory of a process in bytes.
func residentMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
