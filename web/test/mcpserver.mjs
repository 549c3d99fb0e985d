// An MCP server over HTTP with a tool that modifies and one that only reads, which can fail. It
// implements enough of protocol 2025-11-25, without sessions.
import { once } from "node:events";
import { createServer } from "node:http";

export class Gates {
  opened = [];
  broken = false;

  static async start() {
    const gates = new Gates();
    gates.server = createServer((req, res) => gates.serve(req, res)).listen(0, "127.0.0.1");
    await once(gates.server, "listening");
    gates.url = `http://127.0.0.1:${gates.server.address().port}/mcp`;
    return gates;
  }

  async serve(req, res) {
    if (this.broken) return res.writeHead(500).end("the gates are being repaired");
    if (req.method !== "POST") return res.writeHead(405).end();
    let text = "";
    for await (const part of req) text += part;
    const message = JSON.parse(text);
    if (message.id === undefined) return res.writeHead(202).end();
    res
      .writeHead(200, { "Content-Type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...this.answer(message) }));
  }

  answer({ method, params }) {
    if (method === "initialize")
      return {
        result: {
          protocolVersion: "2025-11-25",
          capabilities: { tools: {} },
          serverInfo: { name: "gates", version: "1" },
        },
      };
    if (method === "ping") return { result: {} };
    if (method === "tools/list")
      return {
        result: {
          tools: [
            {
              name: "open_gate",
              description: "Opens a gate of the harbour.",
              inputSchema: { type: "object", properties: { gate: { type: "string" } }, required: ["gate"] },
            },
            {
              name: "list_gates",
              description: "Lists the open gates of the harbour.",
              inputSchema: { type: "object" },
              annotations: { readOnlyHint: true },
            },
          ],
        },
      };
    if (method === "tools/call" && params.name === "list_gates")
      return { result: { content: [{ type: "text", text: `Open gates: ${this.opened.length}.` }] } };
    if (method === "tools/call") {
      this.opened.push(params.arguments.gate);
      return { result: { content: [{ type: "text", text: `The gate ${params.arguments.gate} is open.` }] } };
    }
    return { error: { code: -32601, message: `no method ${method}` } };
  }

  async end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
