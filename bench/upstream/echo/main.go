// Command echo is a minimal MCP server for bench/upstream. It accepts any protocol version, and
// serves on standard input and output, or over HTTP at the address given with -http.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
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
	address := flag.String("http", "", "`address` to serve HTTP at")
	flag.Parse()
	if *address != "" {
		log.Fatal(http.ListenAndServe(*address, http.HandlerFunc(serveHTTP)))
	}
	serveLines()
}

// serveHTTP answers a message of the streamable HTTP transport with JSON.
func serveHTTP(w http.ResponseWriter, r *http.Request) {
	var m request
	switch body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20)); {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case err != nil || json.Unmarshal(body, &m) != nil:
		w.WriteHeader(http.StatusBadRequest)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer(m))
	}
}

func serveLines() {
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
