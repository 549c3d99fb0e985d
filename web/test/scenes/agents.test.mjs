// Scenes of the form of an agent.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { fits, pictures, settled } from "../browser.mjs";
import { skill } from "../hub.mjs";
import { password, scene, signIn, window_ } from "../scene.mjs";

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
  await dialog.getByRole("link", { name: "Agent pilot" }).waitFor();
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

test("a search marks skills that probably do not fit", async (t) => {
  const hub = await scene(t);
  await hub.upload("tide-tables", { "SKILL.md": skill("tide-tables", "Computes tide tables for harbours.") });
  const page = await window_(t, hub, { width: 360, height: 760, scheme: "dark", axe: true });
  await page.goto("/agents/new");
  await page.getByRole("radio", { name: "Only these skills" }).check();
  const search = page.getByRole("combobox", { name: /Add skill/ });
  await search.fill("brew tea in the tables of the captain");
  const weak = page.getByRole("option", { name: /tide-tables.*weak match/ });
  await weak.waitFor();
  await fits(page, "the search for skills");
  await page.screenshot({ path: join(pictures, "agent-weak-match.png") });
  await search.fill("tide tables");
  await page.getByRole("option", { name: /tide-tables/ }).waitFor();
  await weak.waitFor({ state: "detached" });
});
