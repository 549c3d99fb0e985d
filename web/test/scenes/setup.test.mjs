// Scenes of the setup: accounts, models, quotas, and what the hub tells its users.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fits, pictures } from "../browser.mjs";
import { skill } from "../hub.mjs";
import { password, say, scene, signIn, window_ } from "../scene.mjs";
import { Vendor } from "../vendor.mjs";

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
  const skills = page.getByLabel("Skills").first();
  await skills.fill(""); // 0 would be no limit, and an empty field is not 0
  await page.getByRole("button", { name: "Save limits" }).click();
  assert.equal(await skills.evaluate((input) => document.activeElement === input && input.value), "");
  await skills.fill("1");
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
  await dialog.getByText(/must contain the column names/).waitFor();
  await choose("name,email,groups,role\nada,ada@example.com,sea,developer\n=cmd(),,,\nbob,,lake,\nroot,,,\neve,,,\n");
  await dialog.getByText("5 users in the file. 3 users have errors and will be skipped.").waitFor();
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
  await dialog.getByText("3 users in the file. 3 users have errors and will be skipped.").waitFor();
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
  await card.getByRole("button", { name: "Next" }).click();
  await card.getByRole("alert").getByText(/403/).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.name), "model");
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
  await page.setViewportSize({ width: 1366, height: 625 }); // of a laptop with 1366 x 768, below the bars of a browser
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
  await page.screenshot({ path: join(pictures, "connect-laptop.png") });
  const foot = await page.locator(".chat-foot-area").boundingBox();
  const next = await card.getByRole("button", { name: "Next" }).boundingBox();
  assert.ok(next.y + next.height <= foot.y, "the message box covers the button Next");
  await card.getByRole("button", { name: "Next" }).click();
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
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto("/");
  const focused = () => page.evaluate(() => document.activeElement.textContent || document.activeElement.localName);
  await page.getByRole("button", { name: "Change model" }).press("Enter");
  assert.match(await focused(), /^Anthropic/); // the list of providers
  await card.getByRole("button", { name: "Cancel" }).press("Enter");
  assert.equal(await focused(), "Change model");
  await page.getByRole("button", { name: "Change model" }).click();
  assert.equal(await card.getByLabel("Base URL").inputValue(), vendor.url);
  assert.equal(await card.getByText(/No model is configured/).count(), 0);

  // A long list has a filter, and the hub asks before it replaces the model of all users.
  vendor.models = Array.from({ length: 30 }, (_, i) => `fake-${i}`);
  await card.getByRole("button", { name: "Next" }).click();
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

test("connect: a wrong key and an unknown server are named; the context window is kept; the message box gets the focus", async (t) => {
  const vendor = await Vendor.start([{ text: "OK" }, { text: "Hello." }]);
  t.after(() => vendor.end());
  const hub = await scene(t);
  const page = await window_(t, hub);
  page.allowed = [/status of 422/];
  await page.setViewportSize({ width: 1024, height: 560 }); // too low for the form
  await page.goto("/");
  await page.locator(".chat-model", { hasText: "Built-in demo" }).waitFor();
  await page.getByRole("button", { name: "Connect a model" }).press("Enter");
  const card = page.getByRole("form", { name: "Connect a model" });
  assert.equal(await page.evaluate(() => document.activeElement.localName), "select");
  await card.getByLabel("Provider").selectOption("other");
  await card.getByLabel("Base URL").fill(vendor.url);
  await card.getByLabel(/API key/).fill("wrong");
  vendor.listing = 401;
  await card.getByRole("button", { name: "Next" }).click();
  await card
    .getByRole("alert")
    .getByText(/the server rejected the API key: 401/)
    .waitFor();
  await page.screenshot({ path: join(pictures, "connect-wrong-key.png") });
  assert.equal(await card.getByLabel("Model", { exact: true }).count(), 0);
  await card.getByLabel("Base URL").fill("http://127.0.0.1:1/v1");
  await card.getByRole("button", { name: "Next" }).click();
  await card
    .getByRole("alert")
    .getByText(/the server cannot be reached/)
    .waitFor();
  assert.equal(await card.getByLabel("Model", { exact: true }).count(), 0);
  vendor.listing = 200;
  await card.getByLabel("Base URL").fill(vendor.url);
  await card.getByLabel("Context window (optional)").fill("32000");
  await card.getByRole("button", { name: "Next" }).press("Enter");
  await page.getByText(/Model: fake/).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.className), "chat-input");
  await page.getByTitle(/^fake · .*32K tokens of context/).waitFor();
  page.calm();
});

test("add a secret: a link with a name and an owner opens the form for both", async (t) => {
  const hub = await scene(t, { accounts: true });
  const page = await window_(t, hub);
  page.allowed = [/status of 401/];
  await page.goto(await hub.setupPath());
  await page.getByLabel("Name", { exact: true }).fill("root");
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("navigation", { name: "Menu" }).waitFor();
  await page.request.post("/api/v1/groups", { data: { name: "sea" }, headers: { Origin: hub.url } });
  await page.goto("/settings/secrets?name=LLM_KEY&owner=sea");
  const dialog = page.getByRole("dialog", { name: "Add secret" });
  assert.equal(await dialog.getByLabel("Name", { exact: true }).inputValue(), "LLM_KEY");
  const value = dialog.getByLabel("Value", { exact: true });
  await value.fill("v");
  const masked = () => value.evaluate((area) => getComputedStyle(area).webkitTextSecurity);
  assert.equal(await masked(), "disc");
  await dialog.getByLabel("Show the value").check();
  assert.equal(await masked(), "none");
  await dialog.getByRole("button", { name: "Save" }).press("Enter");
  await page.getByText("LLM_KEY", { exact: true }).waitFor();
  const owner = page.getByLabel("Owner");
  assert.equal(await owner.evaluate((s) => s.selectedOptions[0].textContent), "sea");
  await page.reload();
  await page.getByRole("button", { name: "Add secret" }).waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0);
  page.calm();
});

test("help: the sign-in has a link to the documentation, which needs no account", async (t) => {
  const hub = await scene(t, { accounts: true });
  const page = await window_(t, hub);
  page.allowed = [/status of 40[14]/];
  await page.goto("/");
  await page.getByRole("link", { name: "Help" }).press("Enter");
  await page.getByRole("heading", { name: "Accounts", exact: true }).waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  await fits(page, "the documentation without an account");
  await page.screenshot({ path: join(pictures, "docs-signed-out.png") });
  await page.goto("/invite/li_x");
  assert.match(await page.getByRole("link", { name: "Help" }).getAttribute("href"), /hub#invitations$/);
  page.calm();
});
