// Tasks in a conversation.
import assert from "node:assert/strict";
import { over } from "../furnish.mjs";
import { Hub } from "../hub.mjs";
import { Vendor } from "../vendor.mjs";
import { answers, chat, done } from "./stages.mjs";
import { task } from "./table.mjs";

/** heard returns the messages of the user in the last request to the model. */
const heard = (vendor) =>
  vendor.heard
    .at(-1)
    .messages.filter((m) => m.role === "user")
    .map((m) => JSON.stringify(m.content));

const turn = (page, n) => page.locator("article").nth(n);
const versions = (page, n) => turn(page, n).getByRole("group", { name: "Versions" });

async function withoutModel(t) {
  const vendor = await Vendor.start([{ text: "OK" }]);
  t.after(() => vendor.end());
  const hub = await Hub.start();
  t.after(() => hub.end());
  return { hub, vendor };
}

task("connect a model", withoutModel, async ({ hand, page, vendor }) => {
  await page.goto("/");
  const card = page.getByRole("form", { name: "Connect a model" });
  await card.getByText(/No model is configured/).waitFor();
  await hand.choose(card.getByLabel("Provider"), "other");
  await hand.write(card.getByLabel("Base URL"), vendor.url);
  await hand.write(card.getByLabel(/API key/), "k-secret");
  await hand.press(card.getByRole("button", { name: "Next" }));
  await page.getByText(/Model: fake/).waitFor();
  assert.deepEqual([...vendor.keys], ["Bearer k-secret"]);
});

task("first answer with a skill", chat, async ({ hand, page, vendor }) => {
  answers(vendor, { call: ["load_skill", { name: "csv-analysis" }] }, "South is missing a value.");
  await page.goto("/");
  await hand.press(page.getByRole("button", { name: /Analyze a table/ }));
  const send = page.getByRole("button", { name: "Send", exact: true });
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Message");
  await hand.send(send);
  await done(page, "South is missing a value.");
  await page.getByRole("region", { name: "Context" }).getByText("csv-analysis").first().waitFor();
  assert.match(JSON.stringify(vendor.heard.at(-1)), /region,month,sales/);
});

task("edit and resend", chat, async ({ hand, page, vendor }) => {
  answers(vendor, "Answer one.", "Answer two.");
  await page.goto("/");
  await hand.say("a first question");
  await done(page, "Answer one.");
  await hand.press(turn(page, 0).getByRole("button", { name: "Edit" }));
  await hand.write(page.getByRole("textbox", { name: "Edit message" }), "a better question");
  await hand.send(page.locator(".chat-edit").getByRole("button", { name: "Send" }));
  await done(page, "Answer two.");
  await versions(page, 0).getByText("Version 2 of 2").waitFor();
  assert.deepEqual(
    heard(vendor)
      .join()
      .match(/a \w+ question/g),
    ["a better question"],
  );
});

task("regenerate and switch back", chat, async ({ hand, page, vendor }) => {
  answers(vendor, "Answer one.", "Answer two.");
  await page.goto("/");
  await hand.say("a question");
  await done(page, "Answer one.");
  await hand.press(turn(page, 0).getByRole("button", { name: "Try again" }));
  await done(page, "Answer two.");
  assert.equal(await page.getByText("Answer one.", { exact: true }).count(), 0);
  await hand.press(turn(page, 0).getByRole("button", { name: "Earlier version" }));
  await done(page, "Answer one.");
  assert.equal(await page.getByText("Answer two.", { exact: true }).count(), 0);
  await page.reload();
  await done(page, "Answer one."); // the choice is stored
});

task("branch", chat, async ({ hand, page, vendor }) => {
  answers(vendor, "Answer one.", "Answer two.", "Answer three.");
  await page.goto("/");
  await hand.say("question 1");
  await done(page, "Answer one.");
  await hand.say("question 2");
  await done(page, "Answer two.");
  await hand.press(turn(page, 0).getByRole("button", { name: "Continue from here" }));
  await page.getByText("Your next message continues after the answer to “question 1”").waitFor();
  await hand.say("question 3");
  await done(page, "Answer three.");
  assert.deepEqual(
    heard(vendor)
      .join()
      .match(/question \d/g),
    ["question 1", "question 3"],
  );
  await hand.press(versions(page, 1).getByRole("button", { name: "Earlier version" }));
  await done(page, "Answer two.");
});

task("find an old conversation by a word in it", chat, async ({ hand, by, page, hub, vendor }) => {
  answers(vendor, `It is closed at ${by}.`);
  const { id } = await hub.ask("POST", "/sessions", { title: `A walk by ${by}`, message: "Is the lighthouse open?" });
  await over(hub, id);
  await page.goto("/library");
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  const palette = page.getByRole("dialog", { name: "Search and commands" });
  if (hand.isMouse) {
    await hand.press(page.getByRole("navigation").getByRole("link", { name: "Chat" }).first());
    const list = page.getByRole("navigation", { name: "Conversations" });
    await hand.press(list.getByRole("button", { name: "Search" }));
  } else await page.keyboard.press("Control+k");
  await palette.getByRole("combobox").waitFor();
  await hand.write(palette.getByRole("combobox"), `closed ${by}`);
  await palette.locator("mark", { hasText: "closed" }).first().waitFor();
  const found = palette.getByRole("option", { name: new RegExp(`A walk by ${by}`) });
  if (hand.isMouse) await hand.press(found);
  else {
    for (let i = 0; i < 10 && (await found.getAttribute("aria-selected")) !== "true"; i++)
      await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
  }
  await page.waitForURL(new RegExp(`/chat/${id}\\?step=`));
  await page.locator(".is-found", { hasText: `closed at ${by}` }).waitFor();
});

task("paste a picture", chat, async ({ hand, page, vendor }) => {
  answers(vendor, "A red one.");
  await page.goto("/");
  const box = page.getByRole("textbox", { name: "Message" });
  await box.waitFor();
  const png = Buffer.from(
    (
      await page.evaluate(() => {
        const canvas = Object.assign(document.createElement("canvas"), { width: 40, height: 30 });
        canvas.getContext("2d").fillStyle = "red";
        canvas.getContext("2d").fillRect(0, 0, 40, 30);
        return canvas.toDataURL("image/png");
      })
    ).split(",")[1],
    "base64",
  );
  await hand.picture(box, png);
  await hand.say("What is this?");
  await done(page, "A red one.");
  const { content } = vendor.heard.at(-1).messages.findLast((m) => m.role === "user");
  assert.match(content.find((p) => p.type === "image_url").image_url.url, /^data:image\/png;base64,/);
  await hand.press(
    turn(page, 0)
      .getByRole("button", { name: /^View / })
      .first(),
  );
  const large = page.getByRole("dialog").getByRole("img");
  await large.waitFor();
  assert.equal(await large.evaluate((img) => img.decode().then(() => img.naturalWidth)), 40);
});

const narrow = async (t) => ({ ...(await chat(t)), window: { width: 400, height: 800 } });

task("read a formula", narrow, async ({ hand, page, vendor }) => {
  const long = Array.from({ length: 30 }, (_, i) => `a_{${i}}`).join(" + ");
  answers(vendor, `The height is $h = \\frac{a}{2} \\cos(t)$, so\n\n$$E = ${long}$$\n`);
  await page.goto("/");
  await hand.say("Which height?");
  await page.locator("math").nth(1).waitFor({ state: "attached" });
  assert.equal(await page.locator("math").count(), 2);
  assert.match(await page.locator("math mfrac").first().textContent(), /a\s*2/); // for a screen reader
  assert.equal(await page.getByText("\\frac").filter({ visible: true }).count(), 0);
  await page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "detached" });
  const wide = page.getByRole("region", { name: "Formula" }); // wider than the window
  await hand.scroll(wide);
  await page.waitForFunction((e) => e.scrollLeft > 0, await wide.elementHandle());
});

task("change the model", chat, async ({ hand, page, vendor }) => {
  answers(vendor, "Answer one.", "Answer two.");
  await page.goto("/");
  await hand.say("a question");
  await done(page, "Answer one.");
  assert.equal(vendor.heard.at(-1).model, "fake");
  await hand.press(page.getByRole("button", { name: "Model: fake" }));
  await hand.press(page.getByRole("menuitem", { name: /fast-1/ }));
  await page.getByRole("button", { name: "Model: fast-1" }).waitFor();
  await hand.say("another question");
  await done(page, "Answer two.");
  assert.equal(vendor.heard.at(-1).model, "fast-1");
});

task("stop and continue", chat, async ({ hand, page, hub, vendor, t }) => {
  let go;
  const rest = new Promise((resolve) => (go = resolve));
  t.after(() => go());
  answers(vendor, { text: "First, then the rest.", rest }, "Here is the rest.");
  await page.goto("/");
  await hand.say("Tell me all.");
  await page.getByText("First,").first().waitFor();
  await hand.press(page.getByRole("button", { name: "Stop", exact: true }));
  await page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "hidden" });
  await over(hub, page.url().split("/").at(-1));
  assert.equal(await page.getByText("then the rest").count(), 0);
  await hand.say("Go on.");
  await done(page, "Here is the rest.");
  await page.reload();
  await done(page, "Here is the rest.");
  assert.deepEqual(
    heard(vendor)
      .join()
      .match(/Tell me all|Go on/g),
    ["Tell me all", "Go on"],
  );
});

const openGate = (gate) => ({ call: ["call_tool", { name: "gates__open_gate", arguments: { gate } }] });

task("approve by keys", chat, async ({ hand, by, page, vendor, gates }) => {
  answers(vendor, openGate(`north-${by}`), "It is open.");
  await page.goto("/");
  await hand.say("Open the gate.");
  const request = page.getByRole("group", { name: /Approval: .*open_gate/ });
  await request.getByRole("button", { name: "Allow once" }).waitFor();
  if (hand.isMouse) await hand.press(request.getByRole("button", { name: "Allow once" }));
  else {
    await page.keyboard.type("y"); // in the message box, where it answers nothing
    await page.keyboard.press("Control+Shift+Enter");
    await page.waitForFunction(() => document.activeElement.matches(".asks-by-keys"));
    assert.ok(!gates.opened.includes(`north-${by}`));
    await page.keyboard.press("y");
  }
  await done(page, "It is open.");
  assert.equal(gates.opened.filter((g) => g === `north-${by}`).length, 1);
});

task("decline with a comment", chat, async ({ hand, by, page, vendor, gates }) => {
  answers(vendor, openGate(`south-${by}`), "Then not.");
  await page.goto("/");
  await hand.say("Open the gate.");
  const request = page.getByRole("group", { name: /Approval: .*open_gate/ });
  await request.waitFor();
  await hand.write(request.getByLabel("Note to the agent"), "not at night");
  await hand.press(request.getByRole("button", { name: "Deny" }));
  await done(page, "Then not.");
  assert.ok(!gates.opened.includes(`south-${by}`));
  assert.match(JSON.stringify(vendor.heard.at(-1).messages), /not at night/);
});
