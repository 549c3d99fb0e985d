// A site that publishes skills, each as a SKILL.md.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

export class Site {
  skills = new Map();
  held = new Map();

  static async start() {
    const site = new Site();
    site.server = createServer((req, res) => site.serve(req, res)).listen(0, "127.0.0.1");
    await once(site.server, "listening");
    site.url = `http://127.0.0.1:${site.server.address().port}`;
    return site;
  }

  add(name, text) {
    this.skills.set(name, text);
  }

  remove(...names) {
    for (const name of names) this.skills.delete(name);
  }

  /** hold delays the response with a skill until the returned function is called. */
  hold(name) {
    let release;
    this.held.set(name, new Promise((resolve) => (release = resolve)));
    return release;
  }

  async serve(req, res) {
    const name = req.url.slice(1);
    await this.held.get(name);
    if (this.skills.has(name)) return res.end(this.skills.get(name));
    if (req.url !== "/.well-known/agent-skills/index.json") return res.writeHead(404).end();
    const skills = [...this.skills].map(([name, text]) => ({
      name,
      type: "skill-md",
      description: `Skill ${name}.`,
      url: `/${name}`,
      digest: `sha256:${createHash("sha256").update(text).digest("hex")}`,
    }));
    const schema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
    res.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ $schema: schema, skills }));
  }

  async end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
