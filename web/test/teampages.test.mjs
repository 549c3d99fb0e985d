// Each page of a hub with accounts draws, fits and is accessible: the pages that an administrator who owns a group
// reaches by links, and those without a sign-in. The screenshots are kept.
//   LOADOUT_TEST_VIEWS=all   all sizes, schemes and languages; else one of them
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, fits, inOrder, open, pictures, reached, settled } from "./browser.mjs";
import { Hub } from "./hub.mjs";
import { links, pattern, Team } from "./team.mjs";
import { views } from "./views.mjs";

let team, unused, starts;

before(async () => {
  unused = await Hub.start({ accounts: true });
  team = await Team.start();
  const stage = await team.stage("owner");
  const { items } = await team.ask(team.root, "GET", "/users?limit=100");
  const { id } = items.find((user) => user.name === "owner");
  await team.ask(team.root, "PATCH", `/users/${id}`, { admin: true });
  const skill = stage.starts.find((path) => path.startsWith("/library/"));
  const tabs = ["needs", "files", "versions", "findings", "use", "connect"].map((tab) => `${skill}?tab=${tab}`);
  starts = [...stage.starts, ...tabs, "/nothing-here"];
  await stage.page.context().close();
  await mkdir(pictures, { recursive: true });
});

after(async () => {
  await team?.end();
  await unused?.end();
});

/** check opens a page and fails unless it draws, fits and is accessible. */
async function check(page, path, view) {
  const what = `${pattern(path)} (${view.name})`;
  await page.goto(path);
  await page.locator("h1").first().waitFor();
  await settled(page);
  const name = pattern(path)
    .replace(/^\/(setup|shared)\/(?!none).*/, "/$1")
    .replace(/\W+/g, "-");
  await page.screenshot({ path: join(pictures, `team${name}-${view.name}.png`) });
  await fits(page, what);
  await reached(page, what);
  await accessible(page, what);
  if (view.width === 360) await inOrder(page, what);
}

for (const view of views("360-dark-zh-CN")) {
  test(`every page of a team renders and is accessible: ${view.name}`, async () => {
    const page = await open(team.browser, team.hub, { ...view, axe: true });
    page.allowed = [/status of 404/];
    await team.signIn(page, "owner");
    const known = new Set(starts.map(pattern));
    const faults = [];
    for (const queue = [...starts]; queue.length;) {
      const path = queue.shift();
      await check(page, path, view).catch((error) => faults.push(error.message));
      for (const link of await links(page)) {
        if (known.has(pattern(link)) || link.startsWith("/docs")) continue; // the docs share one layout
        known.add(pattern(link));
        queue.push(link);
      }
    }
    console.log(`${view.name}: ${known.size} pages`);
    assert.deepEqual(faults, []);
    assert.ok(known.size > 50, `only ${known.size} pages`);
    page.calm();
    await page.context().close();
  });

  test(`pages without a sign-in render and are accessible: ${view.name}`, async () => {
    for (const [hub, paths] of [
      [team.hub, ["/", "/invite/none", "/shared/none"]],
      [unused, [await unused.setupPath()]],
    ]) {
      const page = await open(team.browser, hub, { ...view, axe: true });
      page.allowed = [/status of 40[14]/];
      for (const path of paths) await check(page, path, view);
      page.calm();
      await page.context().close();
    }
  });
}
