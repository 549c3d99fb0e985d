"""An MCP server of its own."""
import json
import os
import sys

with open(os.environ["LOADOUT_PROVIDER"]) as f:
    context = json.load(f)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("id") is None:
        continue
    answer = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "plain", "version": "1"}}
    elif m["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    elif m["method"] == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": json.dumps([sys.argv[1:], context["tools"][0]["config"], context["skill"]])}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
