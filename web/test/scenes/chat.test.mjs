// Scenes of the chat: skills, approvals, servers, and what survives a failure.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { accessible, fits, pictures, reached } from "../browser.mjs";
import { over } from "../furnish.mjs";
import { skill, zip } from "../hub.mjs";
import { Guarded } from "../issuer.mjs";
import { Gates } from "../mcpserver.mjs";
import { say, scene, window_ } from "../scene.mjs";
import { Vendor } from "../vendor.mjs";

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
  await page.evaluate(() => {
    const press = (_, observer) => {
      if (!document.querySelector(".asks-by-keys")) return;
      observer.disconnect();
      const keys = { key: "Enter", code: "Enter", ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true };
      document.activeElement.dispatchEvent(new window.KeyboardEvent("keydown", keys));
    };
    new window.MutationObserver(press).observe(document.body, { childList: true, subtree: true });
  });
  await say(page, "call open_gate with gate=outer");
  await request.waitFor(); // the keys work as soon as it is drawn
  assert.equal(await request.evaluate((e) => e === document.activeElement), true);
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

test("chat: an unsent message is there after a reload, and a sent one does not come back", async (t) => {
  const hub = await scene(t);
  const page = await window_(t, hub);
  await page.goto("/");
  const box = page.getByRole("textbox", { name: "Message" });
  await box.fill("when is high water?");
  await page.reload();
  await box.waitFor();
  assert.equal(await box.inputValue(), "when is high water?");
  await box.press("Enter");
  await page.waitForURL(/\/chat\//);
  await page.getByText("when is high water?").first().waitFor();
  await box.fill("and low water?");
  await page.reload();
  await page.getByText("when is high water?").first().waitFor();
  assert.equal(await box.inputValue(), "and low water?");
  await page.goto("/");
  await box.waitFor();
  assert.equal(await box.inputValue(), "");
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

test("skills of a server: approved on its page, shown as changed, and loaded after a question", async (t) => {
  const gates = await Gates.start();
  t.after(() => gates.end());
  gates.frontmatter = { name: "tides", description: "Opens the gates in order. Use when ships wait." };
  gates.files = {
    "SKILL.md": `---\nname: tides\ndescription: ${gates.frontmatter.description}\n---\nOpen north first.\n`,
    "table.md": "High at noon.\n",
  };
  const hub = await scene(t, { flags: ["--private", "127.0.0.0/8"] });
  await hub.ask("PUT", "/kinds/MCPServer/default/gates", {
    apiVersion: "loadout/v1",
    kind: "MCPServer",
    metadata: { name: "gates", namespace: "default" },
    spec: { type: "http", url: gates.url, skills: "ask", label: "harbour" },
  });
  const page = await window_(t, hub);
  await page.goto("/servers/MCPServer/default/gates");
  await page.getByText("mcp.harbour/tides").waitFor();
  await page.locator(".tag", { hasText: "Not approved" }).waitFor();
  await page.getByRole("button", { name: "Approve: mcp.harbour/tides" }).press("Enter");
  await page.locator(".tag", { hasText: "Approved" }).waitFor();
  gates.files["table.md"] = "High at one.\n";
  await page.getByRole("button", { name: "Refresh skills" }).click();
  await page.locator(".tag", { hasText: "Changed since approval" }).waitFor();
  await page.getByText("table.md", { exact: true }).waitFor();
  await page.screenshot({ path: join(pictures, "server-skills.png"), fullPage: true });
  const narrow = await window_(t, hub, { width: 360, height: 740, scheme: "dark", language: "zh-CN", axe: true });
  await narrow.goto("/servers/MCPServer/default/gates");
  await narrow.getByText("批准后有改动").waitFor();
  await fits(narrow, "the skills of a server at 360");
  await accessible(narrow, "the skills of a server");
  await narrow.screenshot({ path: join(pictures, "server-skills-narrow.png"), fullPage: true });

  await page.goto("/");
  await say(page, "use the skill mcp.harbour/tides");
  await page.getByRole("heading", { name: /Approval: .*load_skill/ }).waitFor();
  await page.getByText("changed: table.md").first().waitFor();
  await page.screenshot({ path: join(pictures, "server-skill-question.png") });
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("Loaded by the model.", { exact: false }).first().waitFor();
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
  const gmv = new URL("../../../cmd/loadout/testdata/gmv/skills/gmv_analysis/", import.meta.url);
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

test("large library: a name beyond the first 200 skills selects its skill; the newest skills are examples", async (t) => {
  const vendor = await Vendor.start([{ text: "Counted." }]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n`,
  });
  const names = Array.from({ length: 204 }, (_, i) => `a-${1000 + i}`);
  for (let at = 0; at < names.length; at += 12)
    await Promise.all(
      names.slice(at, at + 12).map((name) => hub.upload(name, { "SKILL.md": skill(name, `Does ${name}.`) })),
    );
  await hub.upload("zebra", { "SKILL.md": skill("zebra", "Counts stripes.", "Count each stripe twice.\n") });
  const page = await window_(t, hub);
  await page.goto("/");
  await page.getByRole("button", { name: /zebra/ }).first().waitFor(); // an example
  await say(page, "/zebra count them");
  await page.getByText("Counted.", { exact: true }).waitFor();
  assert.match(JSON.stringify(vendor.heard[0].messages), /Count each stripe twice/);
  page.calm();
});
