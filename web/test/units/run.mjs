// Runs the unit tests in a browser, under the hub's content security policy: `npm test`, or `npm
// test -- markdown` for tests with that word in their names. LOADOUT_TEST_CHROMIUM names a browser
// other than /usr/bin/chromium.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { build } from "vite";
import { launch } from "../browser.mjs";

const root = new URL(".", import.meta.url).pathname;
const out = mkdtempSync(join(tmpdir(), "loadout-web-test-"));

/** policy reads the hub's policy from its source, so that the tests fail where the page would. */
function policy() {
  const source = readFileSync(join(root, "../../../internal/hub/page/page.go"), "utf8");
  const parts = /const pagePolicy = ((?:"[^"]*"[\s+]*)+)/.exec(source);
  if (!parts) throw new Error("internal/hub/page/page.go has no pagePolicy");
  return [...parts[1].matchAll(/"([^"]*)"/g)].map((m) => m[1]).join("");
}

const kinds = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

function serve() {
  const csp = policy();
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://hub").pathname;
    if (path === "/favicon.ico") return response.writeHead(204).end();
    try {
      const data = readFileSync(join(out, path === "/" ? "index.html" : path));
      response
        .writeHead(200, { "Content-Type": kinds[extname(path)] ?? "text/html", "Content-Security-Policy": csp })
        .end(data);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

async function run(server, browser) {
  const origin = `http://127.0.0.1:${server.address().port}`;
  const page = await browser.newPage();
  const outside = [];
  const broken = [];
  page.on("request", (r) => /^(data|blob):/.test(r.url()) || r.url().startsWith(origin) || outside.push(r.url()));
  page.on("pageerror", (e) => broken.push(e.message));
  page.on("console", (m) => (m.type() === "error" ? broken.push(m.text()) : console.log(`     ${m.text()}`)));
  await page.goto(origin);
  // A function is compiled once, before the page's policy applies. A string would be evaluated
  // again at each poll, which the policy refuses.
  await page.waitForFunction(() => window.tests);
  let failed = 0,
    ran = 0;
  for (const name of await page.evaluate("Object.keys(window.tests)")) {
    if (!name.includes(process.argv[2] ?? "")) continue;
    ran++;
    const why = await page.evaluate(async (n) => {
      try {
        await window.tests[n]();
        return "";
      } catch (e) {
        return e.stack ?? String(e);
      }
    }, name);
    const bad = [why, ...outside.splice(0).map((u) => `asked for ${u}`), ...broken.splice(0)].filter(Boolean);
    console.log(bad.length ? `FAIL ${name}\n  ${bad.join("\n  ")}` : `ok   ${name}`);
    failed += bad.length ? 1 : 0;
  }
  if (!ran) throw new Error("no test has run: nothing was built in, or none has that name");
  return failed;
}

let code;
let server, browser;
try {
  await build({
    root,
    configFile: join(root, "../../vite.config.ts"),
    logLevel: "error",
    build: { outDir: out, emptyOutDir: true, minify: false, chunkSizeWarningLimit: 5000 },
  });
  server = await serve();
  browser = await launch();
  code = (await run(server, browser)) ? 1 : 0;
} finally {
  await browser?.close();
  server?.close();
  rmSync(out, { recursive: true, force: true });
}
process.exit(code ?? 1);
