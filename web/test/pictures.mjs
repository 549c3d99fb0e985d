// Takes the screenshots of the documentation: node web/test/pictures.mjs, with LOADOUT_TEST_PROGRAM
// and LOADOUT_TEST_CHROMIUM as web/test/run sets them.
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open, settled } from "./browser.mjs";
import { furnish } from "./furnish.mjs";
import { Hub } from "./hub.mjs";

const images = join(dirname(fileURLToPath(import.meta.url)), "../../docs/images");
await mkdir(images, { recursive: true });
const hub = await Hub.start();
const browser = await launch();
try {
  const places = await furnish(hub);
  const shots = {
    chat: places.conversation,
    library: places.library,
    review: places["review-version"],
    compose: places["compose-skill"],
    usage: places.usage,
  };
  for (const [name, path] of Object.entries(shots)) {
    const page = await open(browser, hub, { width: name === "chat" ? 1440 : 1200, height: 750 });
    await page.goto(path);
    await page.locator("h1").first().waitFor();
    await settled(page);
    await page.evaluate(() => document.activeElement?.blur());
    await page.screenshot({ path: join(images, `${name}.png`) });
    await page.context().close();
  }
} finally {
  await browser.close();
  await hub.end();
}
