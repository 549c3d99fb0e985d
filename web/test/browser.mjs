// A browser for the scenes. Any error in it fails the test.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const axeSource = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The directory of the screenshots. */
export const pictures = process.env.LOADOUT_TEST_PICTURES ?? join(here, "pictures");

/** launch starts Chromium. With little memory, it may need several tries. */
export async function launch(tries = 3) {
  try {
    return await chromium.launch({
      executablePath: process.env.LOADOUT_TEST_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
    });
  } catch (error) {
    if (tries <= 1) throw error;
    return launch(tries - 1);
  }
}

/**
 * open opens a window with its own cookies. It records console errors, external requests and policy
 * breaches in `faults`; `calm()` fails if there are any.
 */
export async function open(
  browser,
  hub,
  { width = 1440, height = 900, scheme = "light", language = "en-US", axe = false } = {},
) {
  const context = await browser.newContext({
    baseURL: hub.url,
    viewport: { width, height },
    colorScheme: scheme,
    locale: language,
    bypassCSP: axe,
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(45_000);
  const page = await context.newPage();
  page.faults = [];
  page.allowed = [];
  page.on("console", (m) => m.type() === "error" && page.faults.push(m.text()));
  page.on("pageerror", (e) => page.faults.push(String(e.stack ?? e)));
  page.on(
    "request",
    (r) =>
      /^https?:/.test(r.url()) &&
      !r.url().startsWith(hub.url + "/") &&
      page.faults.push(`a request leaves the hub: ${r.url()}`),
  );
  page.awaited = new Set();
  page.on("request", (r) => r.resourceType() !== "eventsource" && page.awaited.add(r));
  page.on("requestfinished", (r) => page.awaited.delete(r));
  page.on("requestfailed", (r) => page.awaited.delete(r));
  page.calm = () =>
    assert.deepEqual(
      page.faults.filter((f) => !page.allowed.some((a) => a.test(f))),
      [],
    );
  return page;
}

/** accessible fails if axe finds a problem. Open the page with axe: true. */
export async function accessible(page, what) {
  await page.evaluate(await axeSource);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const found = violations.map(
    (v) =>
      `${v.id}: ${v.nodes
        .slice(0, 3)
        .map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? n.all[0]?.message ?? ""))
        .join(" | ")}`,
  );
  assert.deepEqual(found, [], what);
}

/** fits fails if the page is wider than its window. */
export async function fits(page, what) {
  const [page_, window_] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(page_ <= window_, `${what} is ${page_} wide in a window of ${window_}`);
}

/** reached fails if the message input of the chat, or the open tab of a page, is outside the window. */
export async function reached(page, what) {
  const outside = await page.evaluate(() => {
    const cut = (e) =>
      (({ left, right, bottom }) =>
        left < 0 || right > innerWidth || (e.matches(".chat .chat-foot-area") && bottom > innerHeight))(
        e.getBoundingClientRect(),
      );
    return [...document.querySelectorAll(".chat-foot-area, [role=tab][aria-selected=true]")]
      .filter(cut)
      .map((e) => e.className || e.textContent);
  });
  assert.deepEqual(outside, [], what);
}

const read = /^(heading|button|link|textbox|searchbox|combobox|checkbox|radio|switch|tab)$/;

/**
 * inOrder fails if something in the accessibility tree is drawn above what precedes it there. The window must be
 * so narrow that the page has one column. What stays in sight while the page scrolls, or is out of sight, is left out.
 */
export async function inOrder(page, what) {
  const cdp = await page.context().newCDPSession(page);
  const { nodes } = await cdp.send("Accessibility.getFullAXTree");
  const byID = new Map(nodes.map((n) => [n.nodeId, n]));
  const below = (node) => [node, ...(node.childIds ?? []).flatMap((id) => (byID.has(id) ? below(byID.get(id)) : []))];
  const found = [];
  let last;
  for (const { role, name, ignored, backendDOMNodeId } of below(nodes[0])) {
    if (ignored || !read.test(role?.value)) continue;
    const { object } = await cdp.send("DOM.resolveNode", { backendNodeId: backendDOMNodeId });
    const { result } = await cdp.send("Runtime.callFunctionOn", {
      objectId: object.objectId,
      returnByValue: true,
      functionDeclaration: `function () {
        const { top, bottom } = this.getBoundingClientRect();
        for (let e = this; e; e = e.parentElement) {
          const { position, overflowY } = getComputedStyle(e);
          if (/fixed|sticky/.test(position)) return;
          const box = e.getBoundingClientRect(); // of a list that scrolls by itself, only what is in sight
          if (/auto|scroll/.test(overflowY) && (bottom <= box.top || top >= box.bottom)) return;
        }
        return bottom - top > 1 ? { top, bottom } : undefined;
      }`,
    });
    const at = result.value;
    if (!at) continue;
    if (last && at.bottom <= last.top) found.push(`${role.value} "${name?.value}" is above "${last.name}"`);
    last = { ...at, name: name?.value };
  }
  await cdp.detach();
  assert.deepEqual(found, [], what);
}

/** settled waits until all requests have finished and everything is drawn. Streams stay open. */
export async function settled(page) {
  await page.waitForLoadState("load");
  for (let quiet = 0; quiet < 3; quiet = page.awaited.size ? 0 : quiet + 1) await page.waitForTimeout(50);
  await page.waitForFunction(() => !document.querySelector(".waiting"));
}
