// Smoke scenes in Firefox by WebDriver BiDi. They run if LOADOUT_TEST_FIREFOX names the program. Playwright, which
// drives the other scenes, uses BiDi commands that Firefox does not have.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import puppeteer from "puppeteer-core";
import { pictures } from "./browser.mjs";
import { furnish } from "./furnish.mjs";
import { Hub } from "./hub.mjs";

const executablePath = process.env.LOADOUT_TEST_FIREFOX;
const skip = executablePath ? false : "LOADOUT_TEST_FIREFOX is not set";
let hub, browser, places;

before(async () => {
  if (skip) return;
  hub = await Hub.start();
  places = await furnish(hub);
  browser = await puppeteer.launch({ browser: "firefox", executablePath, protocol: "webDriverBiDi" });
});

after(async () => {
  await browser?.close();
  await hub?.end();
});

/** visit opens a page in a window of its own. An error in it fails the test. */
async function visit(t, path) {
  const page = await browser.newPage();
  const faults = [];
  page.on("pageerror", (e) => faults.push(String(e)));
  page.on("console", (m) => m.type() === "error" && faults.push(m.text()));
  page.setDefaultTimeout(45_000);
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(hub.url + path, { waitUntil: "load" });
  t.after(async () => {
    await page.screenshot({ path: join(pictures, `firefox-${t.name.replace(/\W+/g, "-")}.png`) });
    await page.close();
    assert.deepEqual(faults, []);
  });
  return page;
}

test("a message loads a skill and is answered", { skip }, async (t) => {
  const page = await visit(t, "/");
  await page.locator("textarea").fill("use the skill tides and run scripts/tide.py for the harbour of Brest");
  await page.keyboard.press("Enter");
  await page.locator("::-p-text(high water at 14:20)").wait();
  assert.match(page.url(), /\/chat\//);
});

test("every page draws", { skip }, async (t) => {
  const page = await visit(t, "/");
  for (const [name, path] of Object.entries(places)) {
    await page.goto(hub.url + path, { waitUntil: "load" });
    await page.locator("h1").wait();
    await page.waitForFunction(() => !document.querySelector(".waiting"));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
  }
});

test("a skill is searched and opened by keyboard", { skip }, async (t) => {
  const page = await visit(t, "/library");
  await page.locator("input[type=search]").fill("harbour");
  await page.waitForFunction(
    () => [...document.querySelectorAll(".library-open")].map((e) => e.textContent).join() === "tides",
  );
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator("h1::-p-text(tides)").wait();
});

test("the changes of a version are shown", { skip }, async (t) => {
  const page = await visit(t, places["review-version"]);
  await page.locator("h1::-p-text(version 2)").wait();
  await page.locator("::-p-text(os.system)").wait();
});

test("the editor of a skill takes text", { skip }, async (t) => {
  const page = await visit(t, places["compose-skill"]);
  await page.locator(".cm-content").click();
  await page.keyboard.type("Firefox was here. ");
  await page.waitForFunction(() => document.querySelector(".cm-content").textContent.includes("Firefox was here."));
});
