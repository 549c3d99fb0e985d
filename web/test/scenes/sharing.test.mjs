// Scenes of shared conversations.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { accessible, fits, pictures } from "../browser.mjs";
import { password, picture, scene, signIn, window_ } from "../scene.mjs";
import { Vendor } from "../vendor.mjs";

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
  const help = stranger.getByRole("link", { name: "Help", exact: true });
  assert.match(await help.getAttribute("href"), /hub#shared-conversations$/);
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
    const page = await window_(t, hub, { ...view, axe: true });
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
      await dialog.getByRole("checkbox", { name: /from your messages/ }).uncheck();
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
