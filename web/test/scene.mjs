// Starts a hub and opens browser windows for one scene: what a user does on the page, on a real hub.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before } from "node:test";
import { launch, open, pictures } from "./browser.mjs";
import { Hub } from "./hub.mjs";

let browser;
let windows = 0;
before(async () => {
  await mkdir(pictures, { recursive: true });
  browser = await launch();
});
after(() => browser?.close());

export const password = "a-long-enough-password";

/** scene starts a hub for one scene. */
export async function scene(t, options) {
  const hub = await Hub.start(options);
  hub.windows = [];
  hub.pages = [];
  t.after(async () => {
    for (const close of hub.windows) await close();
    await hub.end();
    for (const page of hub.pages) page.calm();
  });
  return hub;
}

/** window_ opens a browser window for one scene. Unexpected errors in it fail the scene. */
export async function window_(t, hub, options) {
  const page = await open(browser, hub, options);
  hub.pages.push(page);
  const name = `scene-${t.name.split(":")[0].replace(/\W+/g, "-").slice(0, 60)}${++windows}`;
  hub.windows.push(async () => {
    await page.screenshot({ path: join(pictures, `${name}.png`) }).catch(() => {}); // the final state
    await page.context().close();
  });
  return page;
}

export async function signIn(page, name) {
  await page.goto("/");
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("navigation", { name: "Menu" }).waitFor();
}

export async function say(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
}

/** picture returns a PNG of a colour, of which the metadata name a place. */
export async function picture(page, colour) {
  const png = Buffer.from(
    await page.evaluate(async (colour) => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 320, height: 200 });
      const context = canvas.getContext("2d");
      context.fillStyle = colour;
      context.fillRect(0, 0, 320, 200);
      const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
      return [...new Uint8Array(await blob.arrayBuffer())];
    }, colour),
  );
  const text = Buffer.concat([Buffer.from([0, 0, 0, 11]), Buffer.from("tEXtplace\0Paris"), Buffer.alloc(4)]);
  return Buffer.concat([png.subarray(0, 33), text, png.subarray(33)]);
}
