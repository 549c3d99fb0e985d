// An MCP server over HTTP with a tool that modifies, a tool that only reads and can fail, and skills. It
// implements the necessary parts of protocol 2025-11-25, without sessions.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

export class Gates {
  opened = [];
  broken = false;
  /** The files of its only skill, by path. SKILL.md has the frontmatter in this field. */
  files = {};
  frontmatter = {};

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
          capabilities: { tools: {}, resources: {}, extensions: { "io.modelcontextprotocol/skills": {} } },
          serverInfo: { name: "gates", version: "1" },
        },
      };
    if (method === "ping") return { result: {} };
    if (method === "skills/list") return { result: { skills: this.frontmatter.name ? [this.entry()] : [] } };
    if (method === "skills/get" && params.uri === this.entry().uri) return { result: { skill: this.entry() } };
    if (method === "resources/read" && params.uri in this.byURI())
      return { result: { contents: [{ uri: params.uri, text: this.byURI()[params.uri] }] } };
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

  byURI() {
    return Object.fromEntries(
      Object.entries(this.files).map(([path, text]) => [`skill://${this.frontmatter.name}/${path}`, text]),
    );
  }

  entry() {
    const resources = Object.entries(this.byURI()).map(([uri, text]) => ({
      uri,
      digest: `sha256:${createHash("sha256").update(text).digest("hex")}`,
      size: Buffer.byteLength(text),
    }));
    return { uri: `skill://${this.frontmatter.name}/SKILL.md`, frontmatter: this.frontmatter, resources };
  }

  async end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
