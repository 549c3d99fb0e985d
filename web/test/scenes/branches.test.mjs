// Scenes of the branches of a conversation.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { fits, pictures } from "../browser.mjs";
import { say, scene, window_ } from "../scene.mjs";
import { Vendor } from "../vendor.mjs";

test("chat: a message is edited, answered again and left for a branch; its versions stay, also after a reload", async (t) => {
  const said = (text) => ({ text: `Answer ${text}.` });
  const vendor = await Vendor.start([
    said("one"),
    said("two"),
    { call: ["load_skill", { name: "csv-analysis" }] },
    said("three"),
    said("four"),
    said("five"),
    said("six"),
    said("seven"),
  ]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n`,
  });
  const page = await window_(t, hub);
  const heard = () =>
    vendor.heard
      .at(-1)
      .messages.filter((m) => m.role === "user")
      .map((m) => JSON.stringify(m.content));
  const answers = async (...wanted) => {
    const last = page.getByText(`Answer ${wanted.at(-1)}.`, { exact: true });
    await last.waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "detached" });
    assert.deepEqual(
      await page.locator(".chat-answer").allInnerTexts(),
      wanted.map((n) => `Answer ${n}.`),
    );
  };
  const turn = (n) => page.locator("article").nth(n);
  const versions = (n) => turn(n).getByRole("group", { name: "Versions" });
  const context = page.getByRole("region", { name: "Context" });
  const skill = context.getByText("csv-analysis").first();
  const file = (name) => context.getByRole("button", { name: `View ${name}` });
  const attach = async (name) => {
    const composer = page.locator("form.chat-composer");
    const content = { name, mimeType: "text/plain", buffer: Buffer.from(name) };
    await composer.locator("input[type=file]").setInputFiles(content);
    await composer.getByText(name).waitFor();
  };

  await page.goto("/");
  await say(page, "first question");
  await answers("one");
  await attach("before.txt");
  await say(page, "second question");
  await answers("one", "two");
  await file("before.txt").waitFor();

  await turn(1).getByRole("button", { name: "Edit" }).click(); // edit and resend; Escape leaves
  await page.getByRole("textbox", { name: "Edit message" }).press("Escape");
  await page.locator("article:nth-of-type(2) button:focus").press("Enter"); // the focus is on Edit again
  await page.getByRole("textbox", { name: "Edit message" }).fill("better question");
  await page.keyboard.press("Enter");
  await answers("one", "three");
  await page.locator("article:nth-of-type(2) .chat-said:focus").waitFor();
  await file("before.txt").waitFor();
  assert.ok(!heard().join().includes("second question") && heard().at(-1).includes("better question"));
  await skill.waitFor();

  await versions(1).getByRole("button", { name: "Earlier version" }).focus(); // switch by keyboard
  await page.keyboard.press("ArrowLeft");
  await answers("one", "two");
  await versions(1).getByText("Version 1 of 2").waitFor();
  await skill.waitFor({ state: "detached" });
  assert.ok(await versions(1).evaluate((group) => group.contains(document.activeElement)), "the focus is lost");
  await page.reload();
  await answers("one", "two");

  await turn(0).getByRole("button", { name: "Try again" }).click(); // regenerate and switch back
  await answers("four");
  await file("before.txt").waitFor({ state: "detached" });
  await page.screenshot({ path: join(pictures, "branches-again.png") });
  await turn(0).locator("footer").getByRole("button", { name: "Earlier version" }).click();
  await answers("one", "two");
  await file("before.txt").waitFor();

  await turn(0).getByRole("button", { name: "Continue from here" }).click(); // branch, after a change of mind
  await page.getByText("Your next message continues after the answer to “first question”").waitFor();
  await page.screenshot({ path: join(pictures, "branches-continue.png") });
  const [end, cancel] = await page
    .locator(".chat-foot-area > .note")
    .evaluate((note) => [note, note.querySelector("button")].map((e) => e.getBoundingClientRect().right));
  assert.ok(end - cancel < 30, "Cancel is not at the end of the note");
  await page.setViewportSize({ width: 360, height: 780 });
  await page.screenshot({ path: join(pictures, "branches-continue-narrow.png") });
  await fits(page, "the note");
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole("status").getByRole("button", { name: "Cancel" }).click();
  await answers("one", "two");
  await turn(0).getByRole("button", { name: "Continue from here" }).click();
  const id = new URL(page.url()).pathname.split("/").at(-1);
  await hub.ask("POST", `/sessions/${id}/skills`, { name: "csv-analysis" }); // in another window, on another branch
  await skill.waitFor();
  const continues = page.getByText("Your next message continues after the answer to “first question”");
  await continues.waitFor();
  await attach("branch.txt");
  let lost = 0;
  page.allowed = [/ERR_FAILED|Failed to fetch|net::/];
  await page.route("**/messages", async (route) => {
    if (lost++) return route.continue();
    await route.fetch(); // the request arrives, but its response is lost
    return route.abort();
  });
  await say(page, "third question");
  await answers("one", "five");
  assert.equal(lost, 2);
  await continues.waitFor({ state: "detached" });
  await file("branch.txt").waitFor();
  assert.equal(heard().length, 2);
  await versions(1).getByText("Version 3 of 3").waitFor();
  await page.screenshot({ path: join(pictures, "branches-versions.png") });
  await page.reload();
  await answers("one", "five");

  await turn(1).getByRole("button", { name: "Try again" }).click(); // the files of a message are in all its versions
  await answers("one", "six");
  await file("branch.txt").waitFor();
  await versions(1).getByRole("button", { name: "Earlier version" }).click();
  await answers("one", "five");
  await versions(1).getByRole("button", { name: "Earlier version" }).click();
  await answers("one", "three");
  await file("branch.txt").waitFor({ state: "detached" });
  await file("before.txt").waitFor();

  await versions(1).getByRole("button", { name: "Later version" }).click();
  await answers("one", "five");
  await skill.waitFor({ state: "detached" });
  await turn(0).getByRole("button", { name: "Continue from here" }).click(); // a skill is loaded on the new branch
  await context.getByRole("button", { name: "Load skill" }).click();
  await context.getByRole("searchbox", { name: "Load skill" }).fill("csv");
  await context
    .getByRole("button", { name: /^Load: / })
    .first()
    .click();
  await continues.waitFor({ state: "detached" });
  await answers("one");
  await say(page, "fourth question");
  await answers("one", "seven");
  await skill.waitFor();

  await page.goto("/audit");
  await page.getByRole("table").getByText("switch to another branch").first().waitFor();
});
