// Scenes of the list of conversations, and of messages that do not get through.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { accessible, fits, pictures } from "../browser.mjs";
import { over } from "../furnish.mjs";
import { scene, window_ } from "../scene.mjs";
import { Vendor } from "../vendor.mjs";

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
    const { top, bottom } = document.activeElement.getBoundingClientRect(); // the mark ends after a moment
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
