// Every button that a page shows to a role: a click on it is not forbidden, ends in no error and leaves nothing
// that waits for long. The pages and buttons are found by following links. Fields that a form requires are filled.
//   LOADOUT_TEST_ROLES=all   all roles and dialogs; else a reporter's buttons outside of dialogs
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open } from "./browser.mjs";
import { skill } from "./hub.mjs";
import { Site } from "./site.mjs";
import { links, password, pattern, Team } from "./team.mjs";

const everything = process.env.LOADOUT_TEST_ROLES === "all";
const depth = everything ? 3 : 1; // a button, then one in its dialog, then one in the dialog of that
const most = 60; // buttons of one page

const loading = 5_000; // the time after which something may not be loading any more
const patience = 30_000; // the timeout of a request

let team, site;

before(async () => {
  site = await Site.start();
  site.add("ships", skill("ships", "Knows ships. Use for ships."));
  team = await Team.start();
});

after(async () => {
  await team?.end();
  await site?.end();
});

const controls =
  "button, [role=tab], [role=menuitem], [role=menuitemradio], [role=switch], summary, input[type=checkbox], input[type=radio]";

/** inPage adds functions to a page, which find the controls of its last dialog or of all of it, and fill fields. */
function inPage({ controls, password, addresses }) {
  let number = 0;
  const dialog = () => [...document.querySelectorAll("dialog[open], [role=dialog]")].pop();
  const off = (e) => e.disabled || e.getAttribute("aria-disabled") === "true";
  /** formOf returns the form that a button sends, if it is one that does. */
  const formOf = (e) => {
    if (e.type === "submit" && e.form) return e.form;
    return e.matches(".primary, .danger") ? e.closest("form, dialog, [role=dialog]") : null;
  };
  const empty = (form) => {
    const all = [...(form.elements ?? form.querySelectorAll("input, textarea"))];
    return all.filter(
      (e) =>
        e.matches("textarea, input:not([type=checkbox], [type=radio], [type=file], [type=search], [role=combobox])") &&
        !e.value &&
        !e.disabled &&
        !e.readOnly &&
        e.checkVisibility(),
    );
  };
  const value = (field) => {
    const text = `${field.labels?.[0]?.textContent ?? ""} ${field.getAttribute("aria-label") ?? ""} ${field.name}`;
    if (field.type === "password" && !/key|secret|token|value/i.test(text)) return password;
    if (field.type === "number" || field.inputMode === "numeric") return field.min || "1";
    if (field.type === "date") return new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    if (field.type === "email" || /e-?mail/i.test(text)) return "tide@example.com";
    for (const [pattern, address] of addresses) if (new RegExp(pattern, "i").test(text)) return address;
    if (/name|folder|key|tag|名/i.test(text)) return `n${Date.now().toString(36)}${++number}`;
    return "High water at noon";
  };
  const fill = (field) => {
    const { prototype } = field.matches("textarea") ? window.HTMLTextAreaElement : window.HTMLInputElement;
    Object.getOwnPropertyDescriptor(prototype, "value").set.call(field, value(field));
    field.dispatchEvent(new window.Event("input", { bubbles: true }));
    field.dispatchEvent(new window.Event("change", { bubbles: true }));
  };
  const drawn = () => new Promise((done) => window.requestAnimationFrame(() => setTimeout(done, 50)));
  const all = () =>
    [...(dialog() ?? document).querySelectorAll(controls)].filter(
      (e) => e.checkVisibility() && !e.closest("nav") && (!off(e) || (formOf(e) && empty(formOf(e)).length > 0)),
    );

  /** shown lists the controls, each by its text and its number among those with that text. */
  const shown = () => {
    const count = new Map();
    return all().map((e) => {
      const name = (e.getAttribute("aria-label") || e.textContent || e.title || e.name || "").trim().slice(0, 60);
      const text = `${dialog() ? "dialog: " : ""}${e.getAttribute("role") ?? e.tagName.toLowerCase()} ${name}`;
      const number = count.get(text) ?? 0;
      count.set(text, number + 1);
      return number ? `${text} #${number + 1}` : text;
    });
  };

  /** press presses a control. Of a form, it first fills what is required, and all if the control needs it. */
  const press = async (wanted) => {
    const e = all()[shown().indexOf(wanted)];
    if (!e) return false;
    const form = formOf(e);
    if (form) {
      // A server of the test's, and not that of a vendor.
      for (const s of form.querySelectorAll("select"))
        if (s.value !== "other" && [...s.options].some((o) => o.value === "other")) {
          s.value = "other";
          s.dispatchEvent(new window.Event("input", { bubbles: true }));
          s.dispatchEvent(new window.Event("change", { bubbles: true }));
          await drawn();
        }
      for (const f of empty(form)) if (f.required || f.ariaRequired === "true") fill(f);
      await drawn();
      for (let f; off(e) && (f = empty(form)[0]); await drawn()) fill(f); // what makes the control usable
      if (!e.isConnected) return false;
    }
    e.click();
    if (!form) return true;
    await drawn();
    const missing = form.isConnected ? empty(form).filter((f) => f.getAttribute("aria-invalid") === "true") : [];
    for (const f of missing) fill(f);
    if (!missing.length) return true;
    await drawn();
    e.click();
    return true;
  };

  /** alerts lists the errors that are shown, except those of a field. */
  const alerts = () =>
    [...document.querySelectorAll("[role=alert], .toast.bad")]
      .filter((e) => e.checkVisibility() && !e.closest(".field, fieldset") && !e.matches(".error, .agents-fault"))
      .map((e) => e.textContent.trim().slice(0, 300));
  window.walk = { shown, press, alerts };
}

const shown = (page) => page.evaluate(() => window.walk.shown());

/** click clicks on a control that shown lists, and returns whether it is still there. */
const click = (page, wanted) => page.evaluate((wanted) => window.walk.press(wanted), wanted);

// What ends, deletes or answers something comes last, so that the others still find it.
const late = /sign out|delete|remove|revoke|withdraw|reject|archive|end|approve|decline|stop/i;

// Errors that are right, as the hub refuses what these values and clicks ask for, and says what to do.
const expected = [
  /Wrong name or password|用户名或密码错误/,
  /the (model|server) cannot be reached/, // this machine has no model
  /answered 405 Method Not Allowed/, // the server of the test is no repository
  /still in use: \d+ kinds/, // a group with agents
  /cannot remove the last owner/,
];

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
      if (r.status() === 403 || (r.status() >= 500 && pathname !== "/api/v1/migrate/source"))
        this.fault(`${r.status()} ${r.request().method()} ${pattern(pathname)}`);
    });
    page.on("pageerror", (e) => this.fault(`uncaught: ${e.message}`));
  }

  static async of(options) {
    const walk = new Walk(options);
    const addresses = [
      ["base url", "http://127.0.0.1:9/v1"],
      ["source|所在位置", site.url],
      ["url|address|地址", team.gates.url],
      ["^(user|用户)", "guest"],
    ];
    await walk.page.addInitScript(inPage, { controls, password, addresses });
    return walk;
  }

  fault(what) {
    const fault = `${this.at}: ${what}`;
    if (!this.faults.includes(fault)) console.log(`${this.role}: ${fault}`); // at once, as a walk takes minutes
    this.faults.push(fault);
  }

  async everything() {
    while (this.queue.length) {
      const path = this.queue.shift();
      await this.goto(path);
      for (const link of await links(this.page))
        if (!this.known.has(pattern(link))) {
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
      await team.grant(this.role, this.group).catch(() => {}); // its group may be gone
      await team.signIn(this.page, this.role);
      await this.page.goto(path);
      await this.quiet();
    }
  }

  /** quiet waits for all requests, and notes what is loading for long and a request that does not end. */
  async quiet() {
    const waiting = this.page.locator(".waiting");
    const began = Date.now();
    for (let since; ;) {
      await this.page.waitForTimeout(50);
      const [loads, requests] = [await waiting.allTextContents(), [...this.page.awaited]];
      since = loads.length || requests.length ? undefined : (since ?? Date.now());
      if (since && Date.now() - since >= 100) return;
      const late = Date.now() - began;
      if (late > patience || (loads.length && late > loading)) {
        const paths = requests.map((r) => pattern(new URL(r.url()).pathname));
        return this.fault(`waits for ${late} ms: ${[...loads, ...paths].join(", ")}`);
      }
    }
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
      if (new URL(this.page.url()).pathname === new URL(path, team.hub.url).pathname && after.some((c) => !done.has(c)))
        await this.controls(path, [...trail, control], done);
    }
  }

  async redo(path, trail) {
    await this.goto(path);
    for (const control of trail) {
      this.at = `${pattern(path)} > ${trail.slice(0, trail.indexOf(control) + 1).join(" > ")}`;
      const before = await this.page.evaluate(() => window.walk.alerts());
      if (!(await click(this.page, control))) return false;
      await this.quiet();
      for (const text of await this.page.evaluate(() => window.walk.alerts()))
        if (!before.includes(text) && !expected.some((e) => e.test(text))) this.fault(`error: ${text}`);
    }
    return true;
  }
}

test("no button that anonymous visitors see is forbidden or fails", async () => {
  const page = await open(team.browser, team.hub);
  const walk = await Walk.of({ page, role: "anonymous", starts: ["/", "/library", "/shared/none"] });
  await walk.everything();
  assert.deepEqual([...new Set(walk.faults)], []);
  assert.ok(walk.clicks > 0, "nothing to click");
  await page.context().close();
});

for (const role of everything ? ["reporter", "developer", "maintainer", "owner", "admin"] : ["reporter"])
  test(`no button that a ${role} sees is forbidden or fails`, async () => {
    const walk = await Walk.of(await team.stage(role));
    await walk.everything();
    console.log(`${role}: ${walk.known.size} pages, ${walk.clicks} clicks`);
    assert.deepEqual([...new Set(walk.faults)], []);
    assert.ok(walk.clicks > 50, `only ${walk.clicks} clicks`);
    await walk.page.context().close();
  });
