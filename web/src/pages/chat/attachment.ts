import { limits } from "../../shared/api/limits";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { failed } from "../../shared/ui";
import { fileName, freeName } from "./filenames";
import { formForModel, imageLimits, isImage, isPicture, keepForModel } from "./images";

export { addFiles, checkSizes, withUploads } from "./upload";

/** The widths that are tried for an image that is too large, in pixels. */
const edges = [4000, 2500, 1600];

/**
 * readAttachments returns the files that can be read and are within the size limit, and reports the others. Unless
 * they stay as they are, it prepares pictures for models, which get them if they read images.
 */
export async function readAttachments(
  files: readonly File[],
  isPasted?: boolean,
  asTheyAre?: boolean,
): Promise<File[]> {
  const most = (await limits()).session_file;
  const out: File[] = [];
  for (const f of files) {
    try {
      const bytes = await snapshot(isPasted ? pasted(f) : f);
      const { file, small } = asTheyAre ? { file: bytes, small: undefined } : await prepared(bytes);
      // A model that reads images gets the small form. For others, sending a too large picture fails.
      if ((small ?? file).size > most) throw new Error(msg("chat.tooLarge", { name: f.name, most: size(most) }));
      out.push(file);
    } catch (error) {
      failed(error);
    }
  }
  return out;
}

/** snapshot returns a file that does not change. It fails if the browser cannot read it, such as a folder. */
async function snapshot(file: File): Promise<File> {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    throw new Error(msg("chat.unreadable", { name: file.name }));
  }
  return isPicture(file) ? new File([await file.arrayBuffer()], file.name, { type: file.type }) : file;
}

/** prepared returns a file of a message, and the form of it that models read, if it is another one. */
async function prepared(file: File): Promise<{ file: File; small?: File }> {
  if (!isPicture(file)) return { file };
  const image = await createImageBitmap(file).catch(() => undefined);
  if (!image) return { file: new File([file], file.name) }; // damaged, or of a type that the browser cannot draw
  try {
    const fits = file.size <= imageLimits.each && Math.max(image.width, image.height) <= imageLimits.pixels;
    if (isImage(file) && fits) return { file };
    const made = await scaled(image, file.name);
    if (made) keepForModel(file, { ...made, how: fits ? "converted" : "scaled" });
    return { file, small: made?.file };
  } finally {
    image.close();
  }
}

/** scaled returns an image as a JPEG image within the limits. */
async function scaled(image: ImageBitmap, name: string) {
  for (const edge of edges) {
    const factor = Math.min(1, edge / Math.max(image.width, image.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(image.width * factor));
    canvas.height = Math.max(1, Math.round(image.height * factor));
    const context = canvas.getContext("2d");
    if (!context) return undefined;
    context.fillStyle = "#fff"; // JPEG has no transparency
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", 0.85));
    if (blob && blob.size <= imageLimits.each) {
      const file = new File([blob], `${name.replace(/\.[^.]*$/, "")}.jpg`, { type: "image/jpeg" });
      return { file, width: canvas.width, height: canvas.height };
    }
  }
  return undefined;
}

/** mergeFiles merges files and makes their names unique. Pasted pictures all have the same name. */
export function mergeFiles(files: File[], more: File[]): File[] {
  const out = [...files];
  for (const f of more) {
    const name = freeName(fileName(f.name), (name) => out.some((o) => o.name === name));
    out.push(name === f.name ? f : renamed(f, name));
  }
  return out;
}

/** renamed returns a file under another name, with the form that models read. */
function renamed(file: File, name: string): File {
  const out = new File([file], name, { type: file.type });
  const other = formForModel(file);
  if (other) {
    const small = new File([other.file], `${name.replace(/\.[^.]*$/, "")}.jpg`, { type: other.file.type });
    keepForModel(out, { ...other, file: small });
  }
  return out;
}

/** pasted names a pasted picture by the time, because browsers give all of them the same name. */
function pasted(file: File): File {
  const [, end] = /^image(\.[a-z]+)$/.exec(file.name) ?? [];
  if (!end) return file;
  const time = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  return new File([file], `pasted-${time}${end}`, { type: file.type });
}
