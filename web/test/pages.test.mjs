// Every page, light and dark, wide and narrow, in both languages: it draws, fits, is
// accessible, breaks no policy and asks nobody but the hub. Pictures are kept to be looked at.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, fits, launch, open, pictures, settled } from "./browser.mjs";
import { furnish } from "./furnish.mjs";
import { Hub } from "./hub.mjs";

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

const views = [
  { name: "wide-light", width: 1440, height: 900, scheme: "light" },
  { name: "wide-dark", width: 1440, height: 900, scheme: "dark" },
  { name: "narrow-light", width: 360, height: 740, scheme: "light" },
  { name: "narrow-dark", width: 360, height: 740, scheme: "dark" },
  { name: "very-wide", width: 1920, height: 1080, scheme: "light" },
  { name: "chinese", width: 1440, height: 900, scheme: "light", language: "zh-CN" },
  { name: "chinese-narrow", width: 360, height: 740, scheme: "light", language: "zh-CN" },
];

for (const view of views) {
  test(`every page draws and is accessible: ${view.name}`, async () => {
    const page = await open(browser, hub, { ...view, axe: true });
    for (const [name, path] of Object.entries(places)) {
      await page.goto(path);
      await page.locator("h1").first().waitFor();
      await settled(page);
      await page.screenshot({ path: join(pictures, `${name}-${view.name}.png`) });
      await fits(page, `${name} (${view.name})`);
      await accessible(page, `${name} (${view.name})`);
    }
    page.calm();
    await page.context().close();
  });
}

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

test("the first load is small", async () => {
  for (const path of ["/", "/library", places.conversation]) {
    const page = await open(browser, hub);
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Network.enable");
    const kinds = new Map();
    let bytes = 0;
    cdp.on("Network.responseReceived", (e) => kinds.set(e.requestId, e.response.url));
    cdp.on("Network.loadingFinished", (e) => {
      const url = kinds.get(e.requestId) ?? "";
      if (!/\/api\/v1\/|mermaid|editor/.test(url)) bytes += e.encodedDataLength;
    });
    await page.goto(path);
    await settled(page);
    console.log(`first load of ${path}: ${bytes} bytes`);
    assert.ok(bytes <= 80_000, `${path} loads ${bytes} bytes at first`);
    await page.context().close();
  }
});
