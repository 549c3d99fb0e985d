// Every page, light and dark, in four sizes and both languages: it draws, fits, is accessible, breaks
// no policy and sends requests to the hub only. The screenshots are kept.
//   LOADOUT_TEST_VIEWS=all   all combinations; else a sample
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, fits, inOrder, launch, open, pictures, reached, settled } from "./browser.mjs";
import { furnish } from "./furnish.mjs";
import { Hub } from "./hub.mjs";
import { views } from "./views.mjs";

let hub, browser, places;

before(async () => {
  hub = await Hub.start();
  places = await furnish(hub);
  browser = await launch();
  await mkdir(pictures, { recursive: true });
});

after(async () => {
  await browser?.close();
  await hub?.end();
});

// Each size, scheme and language, and those that differ most.
const sample = ["360-light-en-US", "360-dark-zh-CN", "768-light-zh-CN", "1440-dark-en-US", "1920-light-en-US"];

for (const view of views(...sample)) {
  test(`every page renders and is accessible: ${view.name}`, async () => {
    const page = await open(browser, hub, { ...view, axe: true });
    for (const [name, path] of Object.entries(places)) {
      await page.goto(path);
      await page.locator("h1").first().waitFor();
      await settled(page);
      await page.screenshot({ path: join(pictures, `${name}-${view.name}.png`) });
      await fits(page, `${name} (${view.name})`);
      await reached(page, `${name} (${view.name})`);
      await accessible(page, `${name} (${view.name})`);
      if (view.width === 360) await inOrder(page, `${name} (${view.name})`);
    }
    page.calm();
    await page.context().close();
  });
}

/** What opens in front of a page, and what it leaves visible. */
const opened = {
  palette: async (page) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("option").first().waitFor();
  },
  shortcuts: async (page) => {
    await page.locator("h1").first().click(); // the keys belong to the message box otherwise
    await page.keyboard.press("?");
    await page.getByRole("dialog").locator("dd").first().waitFor();
  },
  models: async (page) => {
    await page.locator(".chat-model button").first().click();
    await page.getByRole("menuitem").first().waitFor();
  },
  thumbnails: async (page) => {
    const bytes = await page.screenshot({ clip: { x: 0, y: 0, width: 64, height: 48 } });
    const files = [1, 2, 3].map((n) => ({ name: `harbour-${n}.png`, mimeType: "image/png", buffer: bytes }));
    await page.locator(".chat-composer input[type=file]").setInputFiles(files);
    await page.locator(".chat-attached img").nth(2).waitFor();
  },
};

for (const view of views("360-light-en-US", "360-dark-en-US", "360-light-zh-CN", "1440-dark-en-US"))
  test(`what opens in front of the page fits and is accessible: ${view.name}`, async () => {
    await hub.ask("PUT", "/kinds/Model/default/second", {
      kind: "Model",
      metadata: { name: "second" },
      spec: { vendor: "openai", model: "a-model-with-a-rather-long-name-2026-11-30", baseUrl: "http://127.0.0.1:9/v1" },
    });
    const page = await open(browser, hub, { ...view, axe: true });
    for (const [name, show] of Object.entries(opened)) {
      const what = `${name} (${view.name})`;
      await page.goto("/");
      await page.locator("h1").first().waitFor();
      await settled(page);
      await show(page);
      await page.screenshot({ path: join(pictures, `${name}-${view.name}.png`) });
      await fits(page, what);
      await reached(page, what);
      await accessible(page, what);
      const cut = await page.evaluate(() => {
        const parts = document.querySelectorAll("dialog[open], dialog[open] button, [role=menu], .chat-attached li");
        return [...parts]
          .map((e) => [e.className || e.textContent, e.getBoundingClientRect()])
          .filter(([, r]) => r.width && (r.left < 0 || r.right > innerWidth))
          .map(([text]) => text);
      });
      assert.deepEqual(cut, [], what);
    }
    page.calm();
    await page.context().close();
  });

test("the message box stays above an on-screen keyboard", async () => {
  const page = await open(browser, hub, { width: 360, height: 740 });
  for (const path of ["/", places.conversation]) {
    await page.goto(path);
    await page.locator(".chat-input").click();
    await page.setViewportSize({ width: 360, height: 380 }); // as browsers do with interactive-widget=resizes-content
    const { top, bottom } = await page.locator(".chat-foot-area").evaluate((e) => e.getBoundingClientRect());
    assert.ok(top >= 0 && bottom <= 380, `${path}: the message box is at ${top} to ${bottom} of 380`);
    await page.setViewportSize({ width: 360, height: 740 });
  }
  assert.match(await page.locator("meta[name=viewport]").getAttribute("content"), /interactive-widget=resizes-content/);
  page.calm();
  await page.context().close();
});

test("settings have a list of sections on a wide screen and a select on a narrow one", async () => {
  for (const [width, list, select] of [
    [1440, true, false],
    [360, false, true],
  ]) {
    const page = await open(browser, hub, { width, height: 800 });
    for (const path of [places.settings, places.admin]) {
      await page.goto(path);
      await page.locator("h2").first().waitFor();
      assert.equal(await page.locator(".settings-list").isVisible(), list, `list of ${path} at ${width}`);
      assert.equal(await page.locator(".settings-choice").isVisible(), select, `select of ${path} at ${width}`);
    }
    page.calm();
    await page.context().close();
  }
});

test("no page breaks the content security policy", async () => {
  const page = await open(browser, hub);
  for (const path of Object.values(places)) {
    await page.goto(path);
    await page.locator("h1").first().waitFor();
    await settled(page);
  }
  page.calm();
  await page.context().close();
});

test("a skill's page shows a pending version and its dependencies", async () => {
  const page = await open(browser, hub);
  await page.goto(places.skill);
  const note = page.locator(".note", { hasText: "Version 2 is awaiting review" });
  await note.getByRole("link", { name: "Show changes" }).click();
  await page.getByText("changed file").or(page.getByText("permissions")).first().waitFor();
  await page.getByRole("tab", { name: "Requirements" }).click();
  await page.getByRole("heading", { name: "Requested permissions" }).waitFor();
  await note.getByRole("link", { name: "Review code" }).click();
  await page.getByRole("heading", { name: "Review tides, version 2" }).waitFor();
  page.calm();
  await page.context().close();
});

// The compressed size, without API responses, and without the editor and Mermaid, which load on
// demand. Messages are plain text until the Markdown parser is loaded. The window gives no idle
// moment, so that nothing is loaded ahead.
test("the first load is small and needs few requests", async () => {
  for (const [path, most, requests] of [
    ["/", 59_700, 12],
    ["/library", 55_300, 13],
    [places.conversation, 118_500, 34],
  ]) {
    const page = await open(browser, hub);
    await page.addInitScript(() => (window.requestIdleCallback = () => 0));
    let bytes = 0;
    const seen = [];
    page.on("response", (r) => {
      const { pathname } = new URL(r.url());
      if (!/^https?:/.test(r.url())) return;
      seen.push(pathname);
      if (!/^\/api\//.test(pathname) && !/mermaid|editor/.test(pathname))
        bytes += Number(r.headers()["content-length"] ?? 0);
    });
    await page.goto(path);
    await page.locator("h1").first().waitFor();
    await settled(page);
    const name = path.replace(/\/[0-9a-f-]{36}/, "/ID");
    console.log(`the first load of ${name}: ${bytes} bytes, ${seen.length} requests`);
    assert.ok(bytes <= most, `${path} loads ${bytes} bytes at first`);
    assert.ok(seen.length <= requests, `${path} sends ${seen.length} requests at first: ${seen.join(" ")}`);
    page.calm();
    await page.context().close();
  }
});

test("what the start page needs next is loaded at the first key", async () => {
  const page = await open(browser, hub);
  await page.addInitScript(() => (window.requestIdleCallback = () => 0));
  const loaded = [];
  page.on("response", (r) => loaded.push(new URL(r.url()).pathname.split("/").at(-1)));
  await page.goto("/");
  await page.locator("h1").first().waitFor();
  await settled(page);
  const parts = ["conversationpage.js", "content.js", "palette2.js", "shortcutsheet.js"];
  assert.deepEqual(
    parts.filter((name) => loaded.includes(name)),
    [],
  );
  const all = Promise.all(parts.map((name) => page.waitForResponse((r) => r.url().endsWith(`/${name}`))));
  await page.locator(".chat-input").press("h");
  await all;
  page.calm();
  await page.context().close();
});
