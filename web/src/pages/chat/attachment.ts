import { limits } from "../../shared/api/limits";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { failed } from "../../shared/ui";
import { fileName, freeName } from "./filenames";

export { checkSizes, keepFile, withUploads } from "./upload";

/** The maximum size of an image in bytes, and its maximum width and height. */
interface ImageLimits {
  each: number;
  pixels: number;
}

/** The widths that are tried for an image that is too large, in pixels. */
const edges = [4000, 2500, 1600];

/** readAttachments returns the files that can be read and are within the size limit, and reports the others. */
export async function readAttachments(
  files: readonly File[],
  imageLimits: (file: File) => ImageLimits | undefined,
  isPasted?: boolean,
): Promise<File[]> {
  const most = (await limits()).session_file;
  const out: File[] = [];
  for (const f of files) {
    try {
      const file = await readAttachment(isPasted ? pasted(f) : f, imageLimits(f));
      if (file.size > most) throw new Error(msg("chat.tooLarge", { name: f.name, most: size(most) }));
      out.push(file);
    } catch (error) {
      failed(error);
    }
  }
  return out;
}

/**
 * readAttachment returns a file as it is attached to a message. It fails if the browser cannot read the file, such as a
 * folder. With limits, the file is an image: it is scaled down if it is larger than models accept, and treated as
 * another file if it is damaged.
 */
async function readAttachment(file: File, limits?: ImageLimits): Promise<File> {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    throw new Error(msg("chat.unreadable", { name: file.name }));
  }
  if (!limits) return file;
  const bytes = new File([await file.arrayBuffer()], file.name, { type: file.type }); // the file may change meanwhile
  const image = await createImageBitmap(bytes).catch(() => undefined);
  if (!image) return new File([bytes], file.name);
  try {
    if (bytes.size <= limits.each && Math.max(image.width, image.height) <= limits.pixels) return bytes;
    return (await scaled(image, file.name, limits)) ?? bytes;
  } finally {
    image.close();
  }
}

/** scaled returns an image as a JPEG image within the limits. */
async function scaled(image: ImageBitmap, name: string, limits: ImageLimits): Promise<File | undefined> {
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
    if (blob && blob.size <= limits.each)
      return new File([blob], `${name.replace(/\.[^.]*$/, "")}.jpg`, { type: "image/jpeg" });
  }
  return undefined;
}

/** together merges files and makes their names unique. Pasted pictures all have the same name. */
export function together(files: File[], more: File[]): File[] {
  const out = [...files];
  for (const f of more) {
    const name = freeName(fileName(f.name), (name) => out.some((o) => o.name === name));
    out.push(name === f.name ? f : new File([f], name, { type: f.type }));
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
