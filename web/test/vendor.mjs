// A fake model vendor with the OpenAI chat completions API. Each request gets the next prepared
// response. The list of models is `models`.
import { once } from "node:events";
import { createServer } from "node:http";

export class Vendor {
  heard = [];
  keys = new Set();
  models = ["fake"];
  /** The status of the list of models. */
  listing = 200;
  /** The answer to requests for titles, which `heard` omits and `titled` counts. "" gives none. */
  title = "";
  titled = 0;

  /**
   * start starts a vendor with responses: {text} or {call: [name, arguments]}. A text may have the promise `rest`,
   * for which it waits after its first word, and `usage`.
   */
  static async start(answers) {
    const vendor = new Vendor();
    vendor.answers = [...answers];
    vendor.server = createServer((req, res) => vendor.serve(req, res)).listen(0, "127.0.0.1");
    await once(vendor.server, "listening");
    vendor.url = `http://127.0.0.1:${vendor.server.address().port}/v1`;
    return vendor;
  }

  /** hold delays answers until the returned function is called. */
  hold() {
    let release;
    this.held = new Promise((resolve) => (release = resolve));
    return release;
  }

  async serve(req, res) {
    let text = "";
    for await (const part of req) text += part;
    this.keys.add(req.headers.authorization);
    if (req.method === "GET") {
      res.writeHead(this.listing, { "Content-Type": "application/json" });
      res.end(JSON.stringify({ object: "list", data: this.models.map((id) => ({ id, object: "model" })) }));
      return;
    }
    const request = JSON.parse(text);
    const titles = JSON.stringify(request.messages[0]).includes("Write a title for a conversation.");
    if (titles) this.titled++;
    else {
      this.heard.push(request);
      await this.held;
    }
    const next = titles ? { text: this.title } : (this.answers.shift() ?? { text: "That was all." });
    res.writeHead(200, { "Content-Type": "text/event-stream" });
    const say = (delta, finish = null) =>
      res.write(
        `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "fake", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
      );
    if (next.call) {
      say({
        role: "assistant",
        tool_calls: [
          {
            index: 0,
            id: `call_${this.heard.length}`,
            type: "function",
            function: { name: next.call[0], arguments: JSON.stringify(next.call[1]) },
          },
        ],
      });
      say({}, "tool_calls");
    } else {
      for (const [i, word] of next.text.split(/(?<= )/).entries()) {
        if (i === 1) await next.rest;
        say({ role: "assistant", content: word });
      }
      say({}, "stop");
    }
    if (next.usage)
      res.write(`data: ${JSON.stringify({ id: "c", created: 1, model: "fake", choices: [], usage: next.usage })}\n\n`);
    res.end("data: [DONE]\n\n");
  }

  async end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
