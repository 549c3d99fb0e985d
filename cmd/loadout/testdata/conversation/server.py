"""An MCP server over standard input and output: of a bank, or of the ledger's book."""
import json, os, sys, time

# name -> (annotations, description)
TOOLS = {
    "bank": {"balance": ({"readOnlyHint": True}, "What is there."), "transfer": ({"destructiveHint": False}, "Send money."), "wire": ({}, "Send money at once.")},
    "book": {"post": ({}, "Post a transfer."), "pages": ({"readOnlyHint": True}, "How many pages there are.")},
}
own = TOOLS[sys.argv[1]]


def call(name, arguments):
    if name == "wire":  # which leaves a line, and takes as long as there is a file named hold
        with open("wired", "a") as f:
            f.write("%s\n" % arguments["to"])
        while os.path.exists("hold"):
            time.sleep(0.02)
    return "%s %s" % (name, json.dumps(arguments, sort_keys=True))


for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    out = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        out["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": sys.argv[1], "version": "1"}}
    elif m["method"] == "tools/list":
        out["result"] = {"tools": [{"name": n, "description": d, "annotations": a, "inputSchema": {"type": "object"}} for n, (a, d) in own.items()]}
    elif m["method"] == "tools/call" and m["params"]["name"] in own:
        text = call(m["params"]["name"], m["params"].get("arguments", {}))
        out["result"] = {"content": [{"type": "text", "text": text}]}
    elif m["method"] == "ping":
        out["result"] = {}
    else:
        out["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(out), flush=True)
