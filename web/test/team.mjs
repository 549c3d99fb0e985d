// A hub with accounts and groups whose pages have something to show.
import assert from "node:assert/strict";
import { launch, open } from "./browser.mjs";
import { Hub, skill, zip } from "./hub.mjs";
import { Gates } from "./mcpserver.mjs";

export const password = "a-long-enough-password";

/** A running hub with the administrator root, and a browser. end() stops both. */
export class Team {
  static async start() {
    const team = new Team();
    team.gates = await Gates.start();
    team.hub = await Hub.start({ accounts: true, flags: ["--private", "127.0.0.0/8"] });
    team.browser = await launch();
    const root = (team.root = await open(team.browser, team.hub));
    await root.goto(await team.hub.setupPath());
    await root.getByLabel("Name", { exact: true }).fill("root");
    await root.getByLabel("Password", { exact: true }).fill(password);
    await root.getByRole("button", { name: "Create account" }).click();
    await root.getByRole("navigation", { name: "Menu" }).waitFor();
    await team.ask(root, "POST", "/users", { name: "guest", password });
    return team;
  }

  async end() {
    await this.browser?.close();
    await this.hub?.end();
    await this.gates?.end();
  }

  /** ask calls the API as the user of a window. */
  async ask(page, method, path, data, type = "application/json") {
    const answer = await page.request.fetch(`/api/v1${path}`, {
      method,
      data,
      headers: { Origin: this.hub.url, "Content-Type": type },
    });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
    return answer.status() === 204 ? undefined : answer.json().catch(() => undefined);
  }

  /**
   * stage creates a user with a role in a group, and another member. The group has a skill with a pending version
   * and comments, a server and a team. The user has a shared conversation, a token and a secret. stage returns a
   * window of the user, opened with the options, and the pages from which links lead to all others.
   */
  async stage(role, options) {
    const { root, gates } = this;
    const group = await this.ask(root, "POST", "/groups", { name: `team-${role}` });
    const namespace = `group:${group.id}`;
    await this.grant(role, group.id);
    const { id: mate } = await this.ask(root, "POST", "/users", { name: `mate-of-${role}`, password });
    await this.ask(root, "PUT", `/groups/${group.id}/members/${mate}`, { role: "developer" });
    const packed = (name, line) =>
      zip(
        {
          "SKILL.md": skill(name, "Reads tide tables. Use for tides.", `# Tides\n\n${line}\n`),
          "scripts/tide.py": `print("${line}")\n`,
        },
        name,
      );
    const name = `tides-${role}`;
    const first = await this.ask(
      root,
      "POST",
      `/skills?file_name=${name}.zip&namespace=${namespace}`,
      packed(name, "one"),
      "application/zip",
    );
    await this.ask(root, "PUT", `/skills/${first.id}/versions/1/review`, {
      decision: "approved",
      digest: first.digest,
    });
    await this.ask(root, "POST", `/skills/${first.id}/versions/1/use`);
    await this.ask(
      root,
      "POST",
      `/skills/${first.id}/versions?file_name=${name}.zip`,
      packed(name, "two"),
      "application/zip",
    );
    const comments = `/skills/${first.id}/versions/2/comments`;
    const { digest: second } = await this.ask(root, "GET", `/skills/${first.id}/versions/2`);
    await this.ask(root, "POST", comments, { text: "Why **two**?", path: "scripts/tide.py", line: 1, digest: second });
    await this.ask(root, "POST", comments, { text: "Explain it." });
    const make = (kind, name, spec) =>
      this.ask(root, "PUT", `/kinds/${kind}/${namespace}/${name}`, {
        apiVersion: "loadout/v1",
        kind,
        metadata: { name, namespace },
        spec,
      });
    await make("MCPServer", "gates", { type: "http", url: gates.url, safety: "HIGH" });
    await make("Ghost", "pilot", { description: "Knows tides", systemPrompt: "You are a pilot.", skills: [name] });
    await make("Bot", "pilot", { ghostRef: { name: "pilot" } });
    await make("Ghost", "mate", { systemPrompt: "You help." });
    await make("Bot", "mate", { ghostRef: { name: "mate" } });
    await make("Team", "pilot", {
      members: [
        { botRef: { name: "pilot" }, role: "leader" },
        { botRef: { name: "mate" }, role: "mate" },
      ],
    });

    const page = await open(this.browser, this.hub, options);
    page.on("dialog", (d) => d.accept().catch(() => {}));
    page.on("filechooser", () => {});
    page.context().on("page", (other) => other.close().catch(() => {}));
    await this.signIn(page, role);
    const { id: session } = await this.ask(page, "POST", "/sessions", {
      title: "Brest",
      message: "When is high water?",
    });
    while ((await this.ask(page, "GET", `/sessions/${session}`)).busy) await page.waitForTimeout(50);
    const { digest } = await this.ask(page, "GET", `/sessions/${session}/share`);
    const share = await this.ask(page, "POST", `/sessions/${session}/share`, { digest, audience: "members", days: 1 });
    await this.ask(page, "POST", "/tokens", { name: "script", scopes: ["read"], days: 1 });
    await this.ask(page, "PUT", "/secrets/TIDE_KEY", { value: "k-0123456789abcdef" });
    const at = `team-${role}`;
    return {
      page,
      role,
      group: group.id,
      starts: [
        "/",
        `/chat/${session}`,
        `/shared/${share.link}`,
        `/library/${first.id}`,
        `/review/${first.id}/2`,
        `/compose/${first.id}`,
        ...["edit", "Ghost", "Bot", "Team"].map((kind) => `/agents/${kind}/${at}/pilot`),
        `/admin/groups/${group.id}`,
        `/servers/MCPServer/${at}/gates`,
        `/servers/MCPServer/${at}/gates/edit`,
      ],
    };
  }

  /** grant creates the user of a role, or restores its rights and password. */
  async grant(role, group) {
    const { root } = this;
    let user = (await this.ask(root, "GET", "/users?limit=100")).items.find((u) => u.name === role)?.id;
    user ??= (await this.ask(root, "POST", "/users", { name: role, password })).id;
    await this.ask(root, "PATCH", `/users/${user}`, { admin: role === "admin", disabled: false });
    await this.ask(root, "PUT", `/users/${user}/password`, { password });
    if (role !== "admin") await this.ask(root, "PUT", `/groups/${group}/members/${user}`, { role });
  }

  async signIn(page, name) {
    await this.ask(page, "POST", "/login", { name, password });
  }
}

/** pattern replaces the IDs in a path, so that all pages of one kind have the same pattern. */
export const pattern = (path) =>
  path
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID")
    .replace(/group(:|%3A)[^/&]*/gi, "GROUP")
    .replace(/\?(?!tab=).*/, "");

/** links returns the addresses of the pages that a page links to. */
export async function links(page) {
  const all = await page.evaluate(() =>
    [...document.querySelectorAll("a[href^='/']")].map((a) => a.getAttribute("href")),
  );
  return all.filter((link) => !/^\/api\/|\.\w+$/.test(link));
}
