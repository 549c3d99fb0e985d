// Tasks in the library.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { skill, zip } from "../hub.mjs";
import { answers, crew, done, library } from "./stages.mjs";
import { task } from "./table.mjs";

const packed = (name, files) => ({
  name: `${name}.zip`,
  mimeType: "application/zip",
  buffer: zip(files, name),
});

const menu = (page, name) => page.getByRole("navigation", { name: "Menu" }).getByRole("link", { name });

task("upload, fix what is wrong, upload again", library, async ({ hand, by, page, hub }) => {
  page.allowed = [/status of 4(00|09)/];
  const name = `moon-${by}`;
  await page.goto("/");
  await hand.press(menu(page, "Library"));
  await hand.press(page.getByRole("link", { name: "Add skills" }).first());
  const choose = page.getByRole("button", { name: "Choose ZIP files" });
  await hand.file(choose, packed(name, { "SKILL.md": `---\nname: ${name}\n---\nText.\n` }));
  await page.getByText("Refused", { exact: true }).waitFor();
  const text = (body) => ({ "SKILL.md": skill(name, "Knows the moon. Use for questions on the moon.", body) });
  await hand.file(page.getByRole("button", { name: "Choose corrected file" }), packed(name, text("Look up.\n")));
  await page.getByText("Added", { exact: true }).waitFor();
  assert.equal(await page.getByText("Refused", { exact: true }).count(), 0);
  await hand.file(choose, packed(name, text("Look up at night.\n")));
  await hand.press(page.getByRole("button", { name: "Upload as new version" }));
  await page.getByText("Added as version 2").waitFor();
  const { items } = await hub.ask("GET", `/skills?q=${name}`);
  assert.equal(items[0].number, 2);
});

task("find a skill among 10,000", library, async ({ hand, page }) => {
  await page.goto("/");
  await hand.press(menu(page, "Library"));
  await hand.write(page.getByRole("searchbox").first(), "high water");
  await hand.press(page.locator(".library-card, tr").getByRole("link", { name: "tides" }).first());
  await page.getByRole("heading", { level: 1, name: "tides" }).waitFor();
});

task("install it", library, async ({ hand, page, hub, t }) => {
  const { items } = await hub.ask("GET", "/skills?q=tides");
  await page.goto(`/library/${items.find((s) => s.name === "tides").id}`);
  await hand.press(page.getByRole("button", { name: "Copy the install command" }));
  await page.getByText("Copied").waitFor();
  const line = await page.evaluate(() => navigator.clipboard.readText());
  const home = await mkdtemp(join(tmpdir(), "loadout-install-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  const run = (args) =>
    promisify(execFile)(process.env.LOADOUT_TEST_PROGRAM ?? "loadout", args, {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home, LOADOUT_STATE: join(home, "state") },
    });
  const [command, ...args] = line.split(" ");
  assert.equal(command, "loadout");
  await run(args);
  assert.match((await run(["list", "--json"])).stdout, /"tides"/);
});

task("a new version while the old one runs", crew, async ({ hand, by, page, hub, vendor, window_, t, ...rest }) => {
  const { as, group, root, signIn } = rest;
  const name = `watch-${by}`;
  const says = (line) => ({
    "SKILL.md": skill(name, "Plans the watches of a ship. Use for watches.", `A watch has ${line} hours.\n`),
    "scripts/plan.py": `print("${line}")\n`,
  });
  const query = `file_name=${name}.zip&namespace=group:${group.id}`;
  const made = await as(root, "POST", `/skills?${query}`, zip(says("four"), name), "application/zip");
  await as(root, "PUT", `/skills/${made.id}/versions/1/review`, { decision: "approved", digest: made.digest });
  const ben = await window_();
  await signIn(page, "ada");
  await signIn(ben.page, "ben");

  let go;
  const more = new Promise((resolve) => (go = resolve));
  t.after(() => go());
  const load = { call: ["load_skill", { name }] };
  answers(vendor, load, { text: "Wait, four hours.", rest: more }, "Four hours again.", load, "Six hours now.");
  await page.goto("/");
  await hand.say("How long is a watch?");
  await page.getByText("Wait,").first().waitFor();

  await ben.page.goto(`/library/add?namespace=group:${group.id}`);
  ben.page.allowed = [/status of 409/];
  await ben.hand.file(ben.page.getByRole("button", { name: "Choose ZIP files" }), packed(name, says("six")));
  await ben.hand.press(ben.page.getByRole("button", { name: "Upload as new version" }));
  await ben.page.getByText("Added as version 2").waitFor();
  go();
  await done(page, "Wait, four hours.");
  await hand.say("Really?");
  await done(page, "Four hours again.");
  const told = JSON.stringify(vendor.heard.at(-1).messages);
  assert.ok(told.includes("A watch has four hours.") && !told.includes("six hours"), "the old version does not run on");
  assert.equal((await as(page, "GET", `/skills/${made.id}`)).number, 1);

  const { digest } = await as(root, "GET", `/skills/${made.id}/versions/2`);
  await as(root, "PUT", `/skills/${made.id}/versions/2/review`, { decision: "approved", digest });
  await hand.press(
    page
      .getByRole("button", { name: "New conversation" })
      .or(page.getByRole("link", { name: "New conversation" }))
      .first(),
  );
  await page.waitForURL((url) => url.pathname === "/");
  await hand.say("How long is a watch?");
  await done(page, "Six hours now.");
  assert.match(JSON.stringify(vendor.heard.at(-1).messages), /A watch has six hours\./);
});
