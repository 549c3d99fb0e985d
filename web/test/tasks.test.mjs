// Tasks of users that no scene has, each by keyboard and by mouse: stop and continue, read a formula, find a skill
// among many and install it, and see what a week cost.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { hands, launch, open, pictures } from "./browser.mjs";
import { over } from "./furnish.mjs";
import { Hub, skill } from "./hub.mjs";
import { Vendor } from "./vendor.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

/** stage starts a hub and opens a page of it. */
async function stage(t, options) {
  const hub = await Hub.start(options);
  t.after(() => hub.end());
  const page = await open(browser, hub);
  t.after(() => page.context().close());
  return { hub, page };
}

const model = (vendor) => ({
  env: { OPENAI_API_KEY: "none" },
  config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n  prices: {"*": {input: 3, output: 15}}\n`,
});

for (const [hand, press] of Object.entries(hands)) {
  test(`stop an answer and continue, by ${hand}`, async (t) => {
    let go;
    const rest = new Promise((resolve) => (go = resolve));
    const vendor = await Vendor.start([{ text: "First, then the rest.", rest }, { text: "Here is the rest." }]);
    t.after(() => vendor.end());
    t.after(() => go());
    const { hub, page } = await stage(t, model(vendor));
    await page.goto("/");
    await page.getByRole("textbox", { name: "Message" }).fill("Tell me all.");
    await press(page, page.getByRole("button", { name: "Send", exact: true }));
    await page.getByText("First,").first().waitFor();
    await press(page, page.getByRole("button", { name: "Stop", exact: true }));
    await page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "hidden" });
    const id = page.url().split("/").at(-1);
    await over(hub, id);
    assert.equal(await page.getByText("then the rest").count(), 0);
    await page.getByRole("textbox", { name: "Message" }).fill("Go on.");
    await press(page, page.getByRole("button", { name: "Send", exact: true }));
    await page.getByText("Here is the rest.").first().waitFor();
    await over(hub, id);
    await page.reload();
    await page.getByText("Here is the rest.").first().waitFor();
    const told = vendor.heard.at(-1).messages.filter((m) => m.role === "user");
    assert.deepEqual(
      told.map((m) => /Tell me all|Go on/.exec(JSON.stringify(m))[0]),
      ["Tell me all", "Go on"],
    );
    page.calm();
  });

  test(`find a skill among many and install it, by ${hand}`, async (t) => {
    const { hub, page } = await stage(t);
    const many = Number(process.env.LOADOUT_TEST_SKILLS ?? 200);
    for (let i = 0; i < many; i++)
      await hub.upload(`report-${i}`, { "SKILL.md": skill(`report-${i}`, `Writes report ${i}. Use for reports.`) });
    await hub.upload("tides", {
      "SKILL.md": skill("tides", "Reads tide tables. Use for questions on high water."),
      "references/harbours.md": "# Harbours\n",
    });
    await page.goto("/library");
    await page.getByRole("searchbox").first().fill("high water");
    await press(page, page.locator(".library-card, tr").getByRole("link", { name: "tides" }).first());
    await page.getByRole("heading", { level: 1, name: "tides" }).waitFor();
    await press(page, page.getByRole("button", { name: "Copy the install command" }));
    await page.getByText("Copied").waitFor();
    const line = await page.evaluate(() => navigator.clipboard.readText());
    const home = await mkdtemp(join(tmpdir(), "loadout-install-"));
    t.after(() => rm(home, { recursive: true, force: true }));
    const [command, ...args] = line.split(" ");
    assert.equal(command, "loadout");
    await promisify(execFile)(process.env.LOADOUT_TEST_PROGRAM ?? "loadout", args, {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home, LOADOUT_STATE: join(home, "state") },
    });
    const { stdout } = await promisify(execFile)(process.env.LOADOUT_TEST_PROGRAM ?? "loadout", ["list", "--json"], {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home, LOADOUT_STATE: join(home, "state") },
    });
    assert.match(stdout, /"tides"/);
    page.calm();
  });

  test(`see what a week cost, by ${hand}`, async (t) => {
    const usage = { prompt_tokens: 1_000_000, completion_tokens: 100_000, total_tokens: 1_100_000 };
    const vendor = await Vendor.start([{ text: "High water is at 14:20.", usage }]);
    t.after(() => vendor.end());
    const { hub, page } = await stage(t, model(vendor));
    const { id } = await hub.ask("POST", "/sessions", { title: "Tides", message: "When is high water?" });
    await over(hub, id);
    await page.goto("/");
    await press(page, page.getByRole("navigation").getByRole("link", { name: "Usage" }));
    await press(page, page.getByRole("button", { name: "7 days" }));
    await page.getByText("$4.50").first().waitFor(); // 3 and 1.50
    await page.screenshot({ path: join(pictures, `week-by-${hand}.png`) });
    page.calm();
  });
}

test("a formula is drawn and read by a screen reader", async (t) => {
  const vendor = await Vendor.start([{ text: "The height is $h = \\frac{a}{2} \\cos(t)$, so\n\n$$E = mc^2$$\n" }]);
  t.after(() => vendor.end());
  const { page } = await stage(t, model(vendor));
  await page.goto("/");
  await page.getByRole("textbox", { name: "Message" }).fill("Which height?");
  await page.keyboard.press("Enter");
  await page.locator("math").first().waitFor({ state: "attached" });
  assert.equal(await page.locator("math").count(), 2);
  assert.match(await page.locator("math mfrac").first().textContent(), /a\s*2/);
  assert.equal(await page.getByText("\\frac").filter({ visible: true }).count(), 0);
  page.calm();
});
