// Command echo is a minimal MCP server for bench/upstream. It accepts any protocol version.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

const listing = `{"tools":[{"name":"echo","description":"Say it again.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}`

type request struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProtocolVersion string
		Arguments       struct{ Text string }
	}
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if json.Unmarshal(line, &r) != nil || r.ID == nil {
			continue
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", r.ID, answer(r))
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}

func answer(r request) string {
	switch r.Method {
	case "initialize":
		return fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`, r.Params.ProtocolVersion)
	case "tools/list":
		return `"result":` + listing
	case "tools/call":
		text, _ := json.Marshal(r.Params.Arguments.Text)
		return fmt.Sprintf(`"result":{"content":[{"type":"text","text":%s}]}`, text)
	case "ping":
		return `"result":{}`
	}
	return `"error":{"code":-32601,"message":"unknown"}`
}
