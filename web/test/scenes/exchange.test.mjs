// Scenes of conversations that come from other systems and from exports.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pictures, settled } from "../browser.mjs";
import { over } from "../furnish.mjs";
import { skill, zip } from "../hub.mjs";
import { scene, window_ } from "../scene.mjs";

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
