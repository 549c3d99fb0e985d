// Tasks with others, and with agents.
import assert from "node:assert/strict";
import { over } from "../furnish.mjs";
import { skill, zip } from "../hub.mjs";
import { answers, chat, crew, done, withModel } from "./stages.mjs";
import { task } from "./table.mjs";

const lines = Array.from({ length: 60 }, (_, i) => `# Line ${i + 1} of the table.`);
const packed = (name, says) =>
  zip(
    {
      "SKILL.md": skill(name, "Reads tide tables. Use for tides."),
      "scripts/tide.py": [...lines, "import sys", `print("${says}")`, "sys.exit(0)", ""].join("\n"),
    },
    name,
  );

task("review with a line comment, request changes, approve", crew, async ({ hand, by, page, window_, ...rest }) => {
  const { as, group, signIn } = rest;
  const name = `tides-${by}`;
  const ada = await window_();
  const ben = { hand, page };
  await signIn(ada.page, "ada");
  await signIn(page, "ben");
  const upload = (path, says) => as(ada.page, "POST", path, packed(name, says), "application/zip");
  const { id, digest } = await upload(`/skills?file_name=${name}.zip&namespace=group:${group.id}`, "one");
  await as(page, "PUT", `/skills/${id}/versions/1/review`, { decision: "approved", digest });
  const versions = `/skills/${id}/versions?file_name=${name}.zip`;
  await upload(`${versions}&changelog=${encodeURIComponent("Adds the second tide.")}`, "two");

  await page.goto(`/review/${id}/2`);
  await page.getByText("Adds the second tide.").first().waitFor();
  const file = page.locator(".review-file", { hasText: "scripts/tide.py" });
  await hand.press(file.getByRole("button", { name: "10 lines above" })); // more of the file around the change
  await file.getByText("# Line 50 of the table.").first().waitFor();
  assert.equal(await file.getByText("# Line 40 of the table.").count(), 0);
  await file.locator(".c-string").first().waitFor(); // colours
  await hand.press(file.getByRole("button", { name: "Comment on line 62", exact: true }));
  await hand.write(file.getByRole("textbox", { name: "Comment on line 62" }), "Why **two**?");
  await hand.press(file.getByRole("button", { name: "Comment", exact: true }));
  await file.locator(".review-thread strong", { hasText: "two" }).waitFor();
  await hand.write(page.getByLabel("Comment", { exact: true }), "Explain it.");
  await hand.press(page.getByRole("button", { name: "Request changes" }));
  await page.locator("#main").getByText("Changes requested", { exact: true }).first().waitFor();

  await ada.page.goto("/settings/notices");
  await ada.page.getByText(`Changes to version 2 of ${name} were requested.`).waitFor();
  const notice = ada.page.getByRole("listitem").filter({ hasText: `ben commented on version 2 of ${name}.` });
  await ada.hand.press(notice.getByRole("link"));
  const thread = ada.page.locator(".review-thread");
  await thread.getByText("Why two?").waitFor();
  await ada.hand.press(thread.getByRole("button", { name: "Reply" }));
  await ada.hand.write(thread.getByRole("textbox", { name: "Reply" }), "For the second tide.");
  await ada.hand.press(thread.getByRole("button", { name: "Reply" }));
  await thread.getByText("For the second tide.").waitFor();
  await upload(versions, "the second tide");
  await ada.page.goto(`/review/${id}/3`);
  await ada.page.getByText("Changes to version 2 were requested by ben.").waitFor();
  await thread.getByText("From version 2").waitFor();
  await thread.getByText("Outdated").waitFor();

  await page.goto(`/review/${id}/3`);
  await page.getByText("0 of 1 viewed").waitFor();
  await hand.press(ben.page.getByRole("button", { name: "Resolve" }));
  await page.getByText("Resolved by you · 2 comments").waitFor();
  await hand.check(page.getByLabel("Viewed"));
  await page.getByText("1 of 1 viewed").waitFor();
  await hand.press(page.getByRole("button", { name: "Approve code" }));
  await page.locator("#main").getByText("Approved", { exact: true }).first().waitFor();
  await page.locator(".review-history").getByText("Published").waitFor();
  assert.equal((await as(ada.page, "GET", `/skills/${id}`)).number, 3);
});

task("share a conversation", crew, async ({ hand, by, page, window_, vendor, as, signIn }) => {
  const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  const ben = await window_();
  await signIn(page, "ada");
  await signIn(ben.page, "ben");
  answers(vendor, `High water is at 14:20, ${by}.`, "At 15:10.");
  await page.goto("/");
  await hand.say(`High water? My token is ${secret}`);
  await done(page, `High water is at 14:20, ${by}.`);
  await hand.press(page.locator(".chat-head").getByRole("button", { name: /^Actions/ }));
  await hand.press(page.getByRole("menuitem", { name: "Share…" }));
  const dialog = page.getByRole("dialog", { name: "Share conversation" });
  await dialog.getByText(/secrets? redacted/).waitFor();
  assert.ok(!(await dialog.innerText()).includes(secret));
  await hand.press(dialog.getByRole("button", { name: "Share", exact: true }));
  await hand.press(dialog.getByRole("button", { name: /^Copy/ }).first());
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).includes("/shared/"));
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await hand.press(dialog.getByRole("button", { name: "Done" }));
  await dialog.waitFor({ state: "detached" });
  await hand.say("And tomorrow?");
  await done(page, "At 15:10.");

  await ben.page.goto(link);
  await ben.page.getByText(`High water is at 14:20, ${by}.`).first().waitFor();
  const shown = await ben.page.locator("main").innerText();
  assert.ok(!shown.includes(secret) && !shown.includes("And tomorrow?"), shown);
  assert.equal((await as(page, "GET", "/sessions")).items.length > 0, true);
});

task("make an agent and try it", chat, async ({ hand, by, page, hub, vendor }) => {
  const name = `pilot-${by}`;
  answers(vendor, "High water is at noon.", "Aye, at noon.");
  const before = (await hub.ask("GET", "/sessions?limit=100")).items.length;
  await page.goto("/");
  await hand.press(page.getByRole("navigation", { name: "Menu" }).getByRole("link", { name: "Agents" }));
  await hand.press(page.getByRole("link", { name: "New agent" }));
  await hand.write(page.getByLabel("Name", { exact: true }), name);
  await hand.write(page.getByLabel("Description").first(), "Knows tides");
  const text = page.locator(".cm-content[aria-label='Instructions']"); // not the plain input that comes first
  await hand.write(text, "You are a harbour pilot.");
  await hand.check(page.getByRole("radio", { name: "Only these skills" }));
  const search = page.getByRole("combobox", { name: /Add skill/ });
  await hand.write(search, "csv-analysis");
  await page.getByRole("option", { name: /csv-analysis/ }).waitFor();
  await hand.send(page.getByRole("option", { name: /csv-analysis/ }));
  await page.getByRole("listitem").getByText("csv-analysis", { exact: true }).first().waitFor();

  const talk = page.getByRole("region", { name: "Try it" });
  await hand.write(talk.getByLabel("Message"), "When is high water?");
  await hand.send(talk.getByRole("button", { name: "Send" }));
  await talk.getByText("High water is at noon.", { exact: true }).waitFor();
  assert.match(JSON.stringify(vendor.heard.at(-1).messages[0]), /You are a harbour pilot\./);
  assert.equal((await hub.ask("GET", "/sessions?limit=100")).items.length, before);
  await hand.press(page.getByRole("button", { name: "Create", exact: true }));
  await page.getByRole("heading", { level: 1, name }).waitFor();
  const { spec } = await hub.ask("GET", `/kinds/Ghost/default/${name}`);
  assert.deepEqual([spec.systemPrompt, spec.skills], ["You are a harbour pilot.", ["csv-analysis"]]);
  await hand.press(page.locator("#main").getByRole("link", { name: "Chat", exact: true }));
  await page.waitForURL(/\?agent=/);
  await hand.say("At noon?");
  await done(page, "Aye, at noon.");
});

task("see what a week cost", withModel, async ({ hand, page, hub, vendor }) => {
  const usage = { prompt_tokens: 1_000_000, completion_tokens: 100_000, total_tokens: 1_100_000 };
  answers(vendor, { text: "High water is at 14:20.", usage });
  const { id } = await hub.ask("POST", "/sessions", { title: "Tides", message: "When is high water?" });
  await over(hub, id);
  await page.goto("/");
  await hand.press(page.getByRole("navigation").getByRole("link", { name: "Usage" }));
  await hand.press(page.getByRole("button", { name: "7 days" }));
  await page.getByText("$4.50").first().waitFor(); // 3 and 1.50
});
