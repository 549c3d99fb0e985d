// Every button that a page shows to a role: a click on it is not forbidden, ends in no uncaught error,
// and leaves nothing that waits for ever. The pages and buttons are found by following links.
//   LOADOUT_TEST_ROLES=all   all roles and dialogs; else a reporter's buttons outside of dialogs
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { Hub, skill, zip } from "./hub.mjs";

const everything = process.env.LOADOUT_TEST_ROLES === "all";
const depth = everything ? 3 : 1; // a button, then one in its dialog, then one in the dialog of that
const most = 60; // buttons of one page
const password = "a-long-enough-password";

let hub, browser, root;

before(async () => {
  hub = await Hub.start({ accounts: true });
  browser = await launch();
  root = await open(browser, hub);
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
});

after(async () => {
  await browser?.close();
  await hub?.end();
});

/** ask calls the API as the user of a window. */
async function ask(page, method, path, data, type = "application/json") {
  const answer = await page.request.fetch(`/api/v1${path}`, {
    method,
    data,
    headers: { Origin: hub.url, "Content-Type": type },
  });
  assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
  return answer.status() === 204 ? undefined : answer.json().catch(() => undefined);
}

/** stage makes a user with a role in a group of its own, which has a skill, an agent and a conversation. */
async function stage(role) {
  const group = await ask(root, "POST", "/groups", { name: `team-${role}` });
  const namespace = `group:${group.id}`;
  await grant(role, group.id);
  const packed = (name, line) =>
    zip(
      {
        "SKILL.md": skill(name, "Reads tide tables. Use for tides.", `# Tides\n\n${line}\n`),
        "scripts/tide.py": `print("${line}")\n`,
      },
      name,
    );
  const name = `tides-${role}`;
  const first = await ask(
    root,
    "POST",
    `/skills?file_name=${name}.zip&namespace=${namespace}`,
    packed(name, "one"),
    "application/zip",
  );
  await ask(root, "PUT", `/skills/${first.id}/versions/1/review`, { decision: "approved", digest: first.digest });
  await ask(root, "POST", `/skills/${first.id}/versions/1/use`);
  await ask(root, "POST", `/skills/${first.id}/versions?file_name=${name}.zip`, packed(name, "two"), "application/zip");
  await ask(root, "PUT", `/kinds/Ghost/${namespace}/pilot`, {
    apiVersion: "loadout/v1",
    kind: "Ghost",
    metadata: { name: "pilot", namespace },
    spec: { description: "Knows tides", systemPrompt: "You are a harbour pilot.", skills: [name] },
  });
  const page = await open(browser, hub);
  page.on("dialog", (d) => d.accept().catch(() => {}));
  page.on("filechooser", () => {});
  page.context().on("page", (other) => other.close().catch(() => {}));
  await signIn(page, role);
  const { id: session } = await ask(page, "POST", "/sessions", { title: "Brest", message: "When is high water?" });
  return {
    page,
    role,
    group: group.id,
    starts: [
      "/",
      `/chat/${session}`,
      `/library/${first.id}`,
      `/review/${first.id}/2`,
      `/compose/${first.id}`,
      `/agents/Ghost/${encodeURIComponent(namespace)}/pilot`,
      `/admin/groups/${group.id}`,
    ],
  };
}

/** grant makes the user of a role, or gives back what a click took from it. */
async function grant(role, group) {
  let user = (await ask(root, "GET", "/users?limit=100")).items.find((u) => u.name === role)?.id;
  user ??= (await ask(root, "POST", "/users", { name: role, password })).id;
  await ask(root, "PATCH", `/users/${user}`, { admin: role === "admin", disabled: false });
  await ask(root, "PUT", `/users/${user}/password`, { password });
  if (role !== "admin") await ask(root, "PUT", `/groups/${group}/members/${user}`, { role });
}

async function signIn(page, name) {
  await ask(page, "POST", "/login", { name, password });
}

/** pattern is a path without what differs between two pages of one kind. */
const pattern = (path) =>
  path
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID")
    .replace(/group(:|%3A)[^/&]*/gi, "GROUP")
    .replace(/\?(?!tab=).*/, "");

const controls =
  "button, [role=tab], [role=menuitem], [role=menuitemradio], [role=switch], summary, input[type=checkbox], input[type=radio]";

/** shown lists the controls that can be clicked, each by its text and its number among those with that text. */
const shown = (page) =>
  page.evaluate((controls) => {
    const dialog = [...document.querySelectorAll("dialog[open], [role=dialog]")].pop();
    const count = new Map();
    return [...(dialog ?? document).querySelectorAll(controls)]
      .filter((e) => e.checkVisibility() && !e.disabled && e.getAttribute("aria-disabled") !== "true")
      .filter((e) => !e.closest("nav"))
      .map((e) => {
        const name = (e.getAttribute("aria-label") || e.textContent || e.title || e.name || "").trim().slice(0, 60);
        const text = `${dialog ? "dialog: " : ""}${e.getAttribute("role") ?? e.tagName.toLowerCase()} ${name}`;
        const number = count.get(text) ?? 0;
        count.set(text, number + 1);
        return number ? `${text} #${number + 1}` : text;
      });
  }, controls);

/** click clicks a control that shown lists, and returns whether it is still there. */
async function click(page, wanted) {
  const at = (await shown(page)).indexOf(wanted);
  if (at < 0) return false;
  const handle = await page.evaluateHandle(
    ([controls, at]) => {
      const dialog = [...document.querySelectorAll("dialog[open], [role=dialog]")].pop();
      return [...(dialog ?? document).querySelectorAll(controls)].filter(
        (e) => e.checkVisibility() && !e.disabled && e.getAttribute("aria-disabled") !== "true" && !e.closest("nav"),
      )[at];
    },
    [controls, at],
  );
  await handle.asElement()?.evaluate((e) => e.click());
  return true;
}

// What ends, deletes or answers something comes last, so that the others still find it.
const late = /sign out|delete|remove|revoke|withdraw|reject|archive|end|approve|decline|stop/i;

/** Walk clicks on all controls of all pages that a user reaches. */
class Walk {
  faults = [];
  clicks = 0;
  done = new Map(); // the controls of each page that were clicked

  constructor({ page, role, group, starts }) {
    Object.assign(this, { page, role, group, queue: [...starts], known: new Set(starts.map(pattern)) });
    page.on("response", (r) => {
      const { pathname } = new URL(r.url());
      if (!pathname.startsWith("/api/")) return;
      if (r.status() === 403 || r.status() >= 500)
        this.fault(`${r.status()} ${r.request().method()} ${pattern(pathname)}`);
    });
    page.on("pageerror", (e) => this.fault(`uncaught: ${e.message}`));
  }

  fault(what) {
    this.faults.push(`${this.at}: ${what}`);
  }

  async everything() {
    while (this.queue.length) {
      const path = this.queue.shift();
      await this.goto(path);
      for (const link of await this.page.evaluate(() =>
        [...document.querySelectorAll("a[href^='/']")].map((a) => a.getAttribute("href")),
      ))
        if (!/^\/api\/|\.\w+$/.test(link) && !this.known.has(pattern(link))) {
          this.known.add(pattern(link));
          this.queue.push(link);
        }
      const [page] = pattern(path).split("?"); // the tabs of a page share most of their controls
      if (!this.done.has(page)) this.done.set(page, new Set());
      await this.controls(path, [], this.done.get(page));
    }
  }

  async goto(path) {
    this.at = pattern(path);
    await this.page.goto(path);
    await this.quiet();
    if (this.role !== "anonymous" && (await this.page.locator("[autocomplete=current-password]").count())) {
      await grant(this.role, this.group).catch(() => {}); // its group may be gone
      await signIn(this.page, this.role);
      await this.page.goto(path);
      await this.quiet();
    }
  }

  /** quiet waits for all requests, and notes what then still waits, or a request that does not end. */
  async quiet() {
    const waiting = this.page.locator(".waiting");
    for (let still = 0, all = 0; still < 100 && all < 1200; still = this.page.awaited.size ? 0 : still + 1, all++) {
      await this.page.waitForTimeout(50);
      if (still >= 3 && !(await waiting.count())) return;
    }
    const requests = [...this.page.awaited].map((r) => pattern(new URL(r.url()).pathname));
    this.fault(`waits: ${(await waiting.allTextContents()).join(", ")} ${requests.join(", ")}`);
  }

  /** controls clicks on the controls of a page that appear after some clicks, each once. */
  async controls(path, trail, done) {
    const listed = (await shown(this.page)).filter((c) => !done.has(c)).slice(0, most);
    for (const c of listed) done.add(c);
    for (const control of listed.sort((a, b) => late.test(a) - late.test(b))) {
      if (!(await this.redo(path, [...trail, control]))) continue;
      this.clicks++;
      if (trail.length + 1 >= depth) continue;
      const after = await shown(this.page);
      if (new URL(this.page.url()).pathname === new URL(path, hub.url).pathname && after.some((c) => !done.has(c)))
        await this.controls(path, [...trail, control], done);
    }
  }

  async redo(path, trail) {
    await this.goto(path);
    for (const control of trail) {
      this.at = `${pattern(path)} > ${trail.slice(0, trail.indexOf(control) + 1).join(" > ")}`;
      if (!(await click(this.page, control))) return false;
      await this.quiet();
    }
    return true;
  }
}

test("no button that anonymous visitors see is forbidden or fails", async () => {
  const page = await open(browser, hub);
  const walk = new Walk({ page, role: "anonymous", starts: ["/", "/library", "/shared/none"] });
  await walk.everything();
  assert.deepEqual([...new Set(walk.faults)], []);
  assert.ok(walk.clicks > 0, "nothing to click");
  await page.context().close();
});

for (const role of everything ? ["reporter", "developer", "maintainer", "owner", "admin"] : ["reporter"])
  test(`no button that a ${role} sees is forbidden or fails`, async () => {
    const walk = new Walk(await stage(role));
    await walk.everything();
    console.log(`${role}: ${walk.known.size} pages, ${walk.clicks} clicks`);
    assert.deepEqual([...new Set(walk.faults)], []);
    assert.ok(walk.clicks > 50, `only ${walk.clicks} clicks`);
    await walk.page.context().close();
  });
