// Scenes of the library: uploads, imports, lists and the composer.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { accessible, fits, pictures } from "../browser.mjs";
import { over } from "../furnish.mjs";
import { skill, zip } from "../hub.mjs";
import { password, scene, signIn, window_ } from "../scene.mjs";
import { Site } from "../site.mjs";

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
  await page.getByText("The folder in the ZIP has a different name from the ZIP.").waitFor();
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

test("source: a failed check is shown with its reason, tried again, and mended", async (t) => {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "loadout-source-")));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const repo = join(dir, "skills");
  const git = (...args) =>
    execFileSync("git", ["-C", repo, "-c", "user.name=a", "-c", "user.email=a@example.com", ...args]);
  const commit = async (body) => {
    await writeFile(join(repo, "SKILL.md"), skill("tides", "Reads tide tables. Use for tides.", body));
    git("add", ".");
    git("commit", "-qm", "change");
  };
  await mkdir(repo);
  git("init", "-q");
  await commit("Read.\n");
  const hub = await scene(t, { config: `hub:\n  import_from: [${JSON.stringify(dir)}]\n` });
  const { created } = await hub.ask("POST", "/skills/import", { source: `file://${repo}` });
  const path = `/skills/${created[0].id}`;
  await rename(repo, `${repo}.gone`);
  const failure = await hub.ask("POST", `${path}/check`);
  assert.ok(failure.error && failure.failedSince, JSON.stringify(failure));

  const page = await window_(t, hub);
  page.allowed = [/status of 4/, /net::ERR_/]; // the hub restarts
  await page.goto(`/library/${created[0].id}`);
  const note = page.locator(".note.warn", { hasText: "Checks of the source have failed since" });
  await note.getByText(failure.error).waitFor();
  await note.getByRole("button", { name: "Check now" }).click();
  await page.getByText(/too many requests/).waitFor(); // once a minute
  const narrow = await window_(t, hub, { width: 360, height: 740, scheme: "dark", language: "zh-CN", axe: true });
  await narrow.goto(`/library/${created[0].id}`);
  await narrow.getByRole("button", { name: "立即检查" }).waitFor();
  await fits(narrow, "a source that fails");
  await accessible(narrow, "a source that fails");
  await narrow.screenshot({ path: join(pictures, "source-failed-360.png"), fullPage: true });
  await narrow.goto("about:blank");

  await hub.down();
  await hub.up(); // which forgets the last check
  await note.getByRole("button", { name: "Check now" }).click();
  await page.getByText("The source still cannot be checked.").waitFor();
  await page.screenshot({ path: join(pictures, "source-failed.png"), fullPage: true });
  await hub.down();
  await rename(`${repo}.gone`, repo);
  await commit("Read twice.\n");
  await hub.up();
  await note.getByRole("button", { name: "Check now" }).press("Enter");
  await page.getByText("The source works again.").waitFor();
  await note.waitFor({ state: "detached" });
  await page.getByText(/The source has a newer version/).waitFor();
  await page.goto("/library");
  await page.getByText("Update available").waitFor();

  await rename(repo, `${repo}.gone`);
  await hub.down();
  await hub.up();
  await hub.ask("POST", `${path}/check`);
  await rename(`${repo}.gone`, repo);
  await page.goto(`/library/${created[0].id}`);
  await note.getByRole("button", { name: "Update from source" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Update", exact: true }).click();
  await page.getByText("Updated to version 2.").waitFor();
  await note.waitFor({ state: "detached" });
  await page.getByText("Read twice.").waitFor();
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

test("upload: a SKILL.md without a folder is a skill; a version with code says that an approved one stays in use", async (t) => {
  const hub = await scene(t);
  const files = (text) => ({
    "SKILL.md": skill("tides", "Reads tide tables. Use for tides."),
    "scripts/read.sh": `#!/bin/sh\necho ${text}\n`,
  });
  const made = await hub.upload("tides", files("one"));
  await hub.ask("PUT", `/skills/${made.id}/versions/1/review`, { decision: "approved", digest: made.digest });
  const page = await window_(t, hub);
  await page.goto("/library/add");
  const input = page.locator('input[type="file"]').first();
  const lone = Buffer.from(skill("ships", "Knows ships. Use for questions on ships."));
  await input.setInputFiles({ name: "SKILL.md", mimeType: "text/markdown", buffer: lone });
  await page.getByText("ships.zip").waitFor();
  await page.getByText("Added", { exact: true }).waitFor();
  assert.equal((await hub.ask("GET", "/skills?q=ships")).items[0].name, "ships");
  await page.goto(`/library/add?skill=${made.id}`);
  const second = { name: "tides.zip", mimeType: "application/zip", buffer: Buffer.from(zip(files("two"), "tides")) };
  await input.setInputFiles(second);
  await page.getByText("Until then, an approved earlier version stays in use.", { exact: false }).waitFor();
  assert.equal((await hub.ask("GET", `/skills/${made.id}`)).number, 1);
  page.calm();
});
