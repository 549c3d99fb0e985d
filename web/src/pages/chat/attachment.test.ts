import { same, test } from "../../../test/units/check";
import { api } from "../../shared/api/client";
import { limits } from "../../shared/api/limits";
import { readAttachments } from "./attachment";
import { filesFor } from "./images";

/** photo returns a picture that is larger than the hub accepts, because of bytes after its end. */
async function photo(size: number): Promise<File> {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 20;
  canvas.getContext("2d")!.fillRect(0, 0, 10, 10);
  const png = await new Promise<Blob>((done) => canvas.toBlob((b) => done(b!), "image/png"));
  return new File([png, new Uint8Array(size)], "photo.png", { type: "image/png" });
}

test("attachments: a picture that is too large becomes a small one only for a model that reads images", async () => {
  const about = {
    onRequest: () => Response.json({ limits: { session_file: 8 << 20 } }),
  };
  api.use(about);
  const most = (await limits()).session_file;
  const picture = await photo(most + 1);
  const files = await readAttachments([picture]);
  api.eject(about);
  same(
    files.map((f) => [f.name, f.size]),
    [["photo.png", picture.size]],
  );
  const sent = (reads: boolean) => filesFor(files, reads).map((f) => [f.name, f.size > most]);
  same(sent(true), [["photo.jpg", false]]);
  same(sent(false), [["photo.png", true]]); // sending it fails
});
