// Scenes of images in a conversation.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { fits, pictures } from "../browser.mjs";
import { picture, say, scene, window_ } from "../scene.mjs";
import { Vendor } from "../vendor.mjs";

/** give pastes or drops files on an element of a page, as a browser does. */
const give = (target, kind, files) =>
  target.evaluate(
    (element, { kind, files }) => {
      const data = new window.DataTransfer();
      for (const f of files) data.items.add(new File([new Uint8Array(f.bytes)], f.name, { type: f.type }));
      const event =
        kind === "paste"
          ? new window.ClipboardEvent(kind, { clipboardData: data, bubbles: true, cancelable: true })
          : new window.DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
      element.dispatchEvent(event);
    },
    { kind, files: files.map((f) => ({ ...f, bytes: [...f.bytes] })) },
  );

test("images: pasted, dropped and attached pictures go to a model that reads them, and are files for another one", async (t) => {
  const vendor = await Vendor.start([
    { text: "A red one." },
    { text: "Blue and green." },
    { text: "Again." },
    { text: "A file." },
  ]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n  images: always\n`,
  });
  await hub.ask("PUT", "/kinds/Model/default/plain", {
    kind: "Model",
    metadata: { name: "plain" },
    spec: { vendor: "openai", model: "plain", baseUrl: vendor.url },
  });
  const page = await window_(t, hub);
  page.allowed = [];
  await page.goto("/");
  const composer = page.locator("form.chat-composer");
  const added = composer.getByRole("list", { name: "Files with this message" });
  const red = await picture(page, "red");
  const heard = () => {
    const { content } = vendor.heard.at(-1).messages.findLast((m) => m.role === "user");
    const parts = Array.isArray(content) ? content : [{ type: "text", text: content }];
    const urls = parts.filter((p) => p.type === "image_url").map((p) => p.image_url.url);
    return { urls, text: parts.map((p) => p.text ?? "").join("") };
  };

  await give(page.locator("body"), "paste", [{ name: "image.png", type: "image/png", bytes: red }]); // a new conversation
  await added.getByText(/pasted-\d+-\d+\.png/).waitFor();
  await added.getByRole("button", { name: /^View pasted/ }).click();
  await page.getByRole("dialog").getByRole("img").waitFor();
  await page.keyboard.press("Escape");
  await page.screenshot({ path: join(pictures, "image-pasted.png") });
  await say(page, "What is this?");
  await page.getByText("A red one.", { exact: true }).waitFor();
  const [url] = heard().urls;
  assert.match(url, /^data:image\/png;base64,/);
  const sent = Buffer.from(url.split(",")[1], "base64");
  assert.ok(!sent.includes("Paris") && red.includes("Paris"), "the metadata are sent");
  assert.equal(sent.length, red.length - 23);
  assert.match(heard().text, /pasted-.*What is this\?/s);

  const blue = { name: "blue.png", type: "image/png", bytes: await picture(page, "blue") };
  const list = { name: "list.txt", type: "text/plain", bytes: Buffer.from("one") };
  await give(page.getByRole("region", { name: "Messages" }), "drop", [blue, list]); // anywhere on the conversation
  await added.getByText("list.txt").waitFor();
  await composer
    .locator("input[type=file]")
    .setInputFiles([{ name: "green.png", mimeType: "image/png", buffer: await picture(page, "green") }]);
  await added.getByText("green.png").waitFor();
  await give(composer, "paste", [{ name: "x.png", type: "image/png", bytes: Buffer.from("not a picture") }]);
  await added.getByText("x.png").waitFor();
  await say(page, "And these?");
  await page.getByText("Blue and green.", { exact: true }).waitFor();
  assert.equal(heard().urls.length, 2);
  assert.match(heard().text, /Files added: list\.txt, x\.png/); // which is no picture
  assert.equal(vendor.heard.at(-1).messages.filter((m) => JSON.stringify(m).includes(url)).length, 1); // the first one is still there

  const thumb = page.locator("article").nth(1).getByRole("button", { name: "View blue.png" });
  await thumb.click();
  const large = page.getByRole("dialog", { name: "blue.png" });
  await large.getByRole("img", { name: "blue.png" }).waitFor();
  assert.equal(await large.getByRole("img").evaluate((img) => img.decode().then(() => img.naturalWidth)), 320);
  await page.screenshot({ path: join(pictures, "image-large.png") });
  await page.keyboard.press("Escape");
  await hub.down();
  await hub.up();
  page.allowed.push(/ERR_CONNECTION_REFUSED|Failed to fetch|status of 50/);
  await page.reload();
  await thumb.waitFor();
  await page.locator("article").nth(1).getByRole("button", { name: "Try again" }).click();
  await page.getByText("Again.", { exact: true }).waitFor();
  assert.equal(heard().urls.length, 2);

  await page.getByRole("button", { name: "Model: fake" }).click(); // of another model, the message box says what it does not read
  await page.getByRole("menuitem", { name: /plain/ }).click();
  await give(composer, "paste", [blue]);
  await composer.getByText("plain does not read images. It gets them as files.").waitFor();
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: join(pictures, `image-text-model-${width}.png`) });
    await fits(page, `the page at ${width}`);
  }
  await say(page, "And now?");
  await page.getByText("A file.", { exact: true }).waitFor();
  assert.equal(vendor.heard.at(-1).model, "plain");
  assert.ok(
    !JSON.stringify(vendor.heard.at(-1)).includes("data:image"),
    "images are sent to a model that does not read them",
  );
  assert.match(heard().text, /Image blue-2\.png omitted: this model does not accept images/);
});

/** noise returns a large PNG, which cannot be compressed, and a small BMP image. */
async function noise(page) {
  const png = Buffer.from(
    await page.evaluate(async () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 1300, height: 1100 });
      const context = canvas.getContext("2d");
      const image = context.createImageData(1300, 1100);
      for (let i = 0; i < image.data.length; i += 65536)
        window.crypto.getRandomValues(image.data.subarray(i, i + 65536));
      for (let i = 3; i < image.data.length; i += 4) image.data[i] = 255;
      context.putImageData(image, 0, 0);
      const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
      return window.btoa(
        new Uint8Array(await blob.arrayBuffer()).reduce((text, byte) => text + String.fromCharCode(byte), ""),
      );
    }),
    "base64",
  );
  const bmp = Buffer.alloc(58);
  bmp.write("BM");
  [
    [2, 58],
    [10, 54],
    [14, 40],
    [18, 1],
    [22, 1],
    [34, 4],
  ].forEach(([at, value]) => bmp.writeUInt32LE(value, at));
  bmp.writeUInt16LE(1, 26);
  bmp.writeUInt16LE(24, 28);
  return { png, bmp };
}

test("pictures: only a model that reads images gets them scaled or converted; files beside a conversation stay as they are", async (t) => {
  const vendor = await Vendor.start([{ text: "Noise." }, { text: "Files." }]);
  t.after(() => vendor.end());
  const hub = await scene(t, {
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n  images: always\n`,
  });
  await hub.ask("PUT", "/kinds/Model/default/plain", {
    kind: "Model",
    metadata: { name: "plain" },
    spec: { vendor: "openai", model: "plain", baseUrl: vendor.url },
  });
  const page = await window_(t, hub);
  await page.goto("/");
  const { png, bmp } = await noise(page);
  assert.ok(png.length > 15 << 18 && png.length < 8 << 20, `${png.length} bytes`);
  const composer = page.locator("form.chat-composer");
  const added = composer.getByRole("list", { name: "Files with this message" });
  const large = { name: "noise.png", mimeType: "image/png", buffer: png };
  await composer
    .locator("input[type=file]")
    .setInputFiles([
      large,
      { name: "dot.bmp", mimeType: "image/bmp", buffer: bmp },
      { name: "phone.heic", mimeType: "", buffer: Buffer.from("not drawn") },
      { name: "plan.svg", mimeType: "image/svg+xml", buffer: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>") },
    ]);
  await added
    .getByText("scaled to 1,300 × 1,100 for the model")
    .or(added.getByText("scaled to 1300 × 1100 for the model"))
    .waitFor();
  await added.getByText("converted to JPEG for the model").waitFor();
  await composer.getByText("Models cannot read these as images, and get them as files: phone.heic, plan.svg").waitFor();
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: join(pictures, `picture-scaled-${width}.png`) });
    await fits(page, `the page at ${width}`);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await say(page, "What is this?");
  await page.getByText("Noise.", { exact: true }).waitFor();
  const [{ id }] = (await hub.ask("GET", "/sessions")).items;
  const files = async () =>
    (await hub.ask("GET", `/sessions/${id}/files`)).items.map((f) =>
      f.path.startsWith("noise") ? `${f.path} ${f.size === png.length}` : f.path,
    );
  assert.deepEqual(await files(), ["dot.jpg", "noise.jpg false", "phone.heic", "plan.svg"]);

  // A model that reads no images gets the file itself.
  await page.getByRole("button", { name: "Model: fake" }).click();
  await page.getByRole("menuitem", { name: /plain/ }).click();
  await composer.locator("input[type=file]").setInputFiles([large]);
  await composer.getByText("plain does not read images. It gets them as files.").waitFor();
  assert.equal(await added.getByText(/for the model/).count(), 0);
  await say(page, "And this?");
  await page.getByText("Files.", { exact: true }).waitFor();
  assert.ok((await files()).includes("noise.png true"), `${await files()}`);

  // Beside the conversation, files stay as they are, and replace no others.
  await page
    .locator("section", { has: page.getByRole("heading", { name: "Files", exact: true }) })
    .last()
    .locator("input[type=file]")
    .setInputFiles([large]);
  await page.getByText("noise.png was added as noise-2.png, because a file with that name already exists.").waitFor();
  assert.ok((await files()).includes("noise-2.png true"), `${await files()}`);
});
