// Measures how fast the page becomes usable on a slow device: node web/test/measure.mjs [SKILLS [MESSAGES]],
// with LOADOUT_TEST_PROGRAM and LOADOUT_TEST_CHROMIUM as web/test/run sets them. It prints medians of five
// loads with an empty cache, over an emulated 4G network (9 Mbit/s, 165 ms) and with a quarter of the processor.
// Nothing else may run on the machine for the times. It fails if sizes, requests or layout shifts exceed a limit.
import { launch, open, settled } from "./browser.mjs";
import { furnish } from "./furnish.mjs";
import { Hub, skill } from "./hub.mjs";

const [skills = 10_000, messages = 5_000] = process.argv.slice(2).map(Number);
const rounds = 5;

/** fill uploads skills, several at a time. */
async function fill(hub, count) {
  const words = ["tide", "invoice", "release", "query", "harbour", "minutes", "weather", "budget", "route", "contract"];
  const ofNumber = (i) => [i % 10, Math.floor(i / 10) % 10, Math.floor(i / 100) % 10].map((n) => words[n]);
  const numbers = Array.from({ length: count }, (_, i) => i).values();
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (const i of numbers) {
        const name = `${ofNumber(i).join("-")}-${i}`;
        await hub.upload(name, {
          "SKILL.md": skill(name, `Helps with ${ofNumber(i).join(", ")}, case ${i}. Use for questions on these.`),
        });
      }
    }),
  );
}

/** talk migrates a conversation with so many messages, and returns its path. */
async function talk(hub, count) {
  const time = (i) => new Date(Date.UTC(2026, 0, 1) + i * 1000).toISOString();
  const lines = [{ seq: 1, time: time(0), type: "begun", begun: { instructions: "", skills: [] } }];
  for (let i = 0; i < count; i++)
    lines.push({
      seq: i + 2,
      time: time(i + 1),
      type: "message",
      message:
        i % 2
          ? {
              role: "assistant",
              text: `High water ${i} is at **14:20**, and \`tide.py\` says so.\n\n- one\n- two`,
              stop: "end",
            }
          : { role: "user", text: `When is high water ${i}?` },
    });
  const file = lines.map((l) => JSON.stringify(l)).join("\n") + "\n";
  const { items } = await hub.ask("POST", "/migrate?system=loadout&file_name=long.jsonl&apply=true", file, {
    type: "application/octet-stream",
  });
  return `/chat/${items.find((i) => i.kind === "conversation").id}`;
}

// What a user waits for.
const usable = {
  start: (page) => page.locator("textarea:enabled"),
  conversation: (page) => page.getByText("high water at 14:20"),
  library: (page) => page.locator(".library-card"),
  composer: (page) => page.locator(".cm-content"),
  "long conversation": (page) => page.getByText(`High water ${messages - 1} is`),
  "long conversation, by its link": (page) => page.getByText(`High water ${messages - 1} is`),
};

// What does not depend on the machine.
const limits = {
  start: { cls: 0.02 },
  conversation: { cls: 0.02 },
  library: { cls: 0.02, bytes: 100_000 },
  composer: { cls: 0.02 },
};

/** load opens a page once with an empty cache, or by its link on another page, and returns what it took. */
async function load(browser, hub, { path, from }, ready) {
  const page = await open(browser, hub);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  await cdp.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: 165,
    downloadThroughput: 9_000_000 / 8,
    uploadThroughput: 1_500_000 / 8,
  });
  await cdp.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  let requests = 0;
  let bytes = 0;
  cdp.on("Network.requestWillBeSent", ({ request }) => (requests += /^http/.test(request.url)));
  cdp.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  await page.addInitScript(() => {
    window.shifts = 0;
    new window.PerformanceObserver((list) => {
      for (const e of list.getEntries()) if (!e.hadRecentInput) window.shifts += e.value;
    }).observe({ type: "layout-shift", buffered: true });
  });
  let began = performance.now();
  await page.goto(from ?? path, { waitUntil: "commit" });
  if (from) {
    const link = page.locator(`a[href="${path}"]`).first();
    await link.waitFor();
    await settled(page);
    requests = bytes = 0;
    began = performance.now();
    await link.click();
  }
  await ready(page).first().waitFor();
  await page.evaluate(() => new Promise((done) => window.requestAnimationFrame(() => setTimeout(done))));
  const ms = performance.now() - began;
  const first = { requests, bytes }; // the rest is loaded ahead
  await settled(page);
  const cls = await page.evaluate(() => window.shifts);
  await page.context().close();
  return { ms, cls, ...first };
}

const hub = await Hub.start({ env: { LOADOUT_HUB_RATE: "100000" } }); // for thousands of uploads
const browser = await launch();
try {
  const furnished = await furnish(hub);
  await fill(hub, skills);
  const long = await talk(hub, messages);
  const pages = {
    start: { path: "/" },
    conversation: { path: furnished.conversation },
    library: { path: "/library" },
    composer: { path: furnished["compose-skill"] },
    "long conversation": { path: long },
    "long conversation, by its link": { path: long, from: furnished.conversation },
  };
  console.log(`${skills} skills, ${messages} messages; medians of ${rounds}\n`);
  console.log("| page | usable | CLS | requests | kB |\n| --- | --- | --- | --- | --- |");
  for (const [name, place] of Object.entries(pages)) {
    const all = [];
    for (let i = 0; i < rounds; i++) all.push(await load(browser, hub, place, usable[name]));
    const median = (of) => all.map((r) => r[of]).sort((a, b) => a - b)[Math.floor(rounds / 2)];
    for (const [of, limit] of Object.entries(limits[name] ?? {}))
      if (median(of) > limit) {
        console.error(`${name}: ${of} is ${median(of)}, limit ${limit}`);
        process.exitCode = 1;
      }
    console.log(
      `| ${name} | ${(median("ms") / 1000).toFixed(2)} s | ${median("cls").toFixed(3)} | ${median("requests")} | ${(median("bytes") / 1000).toFixed(1)} |`,
    );
  }
} finally {
  await browser.close();
  await hub.end();
}
