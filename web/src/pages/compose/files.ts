/** A file of a draft: its text, or its bytes if it is not text. */
export interface DraftFile {
  path: string;
  text?: string;
  base64?: string;
}

export const skillFile = "SKILL.md";

/** fileOf decodes the bytes of a file as text, if possible. */
export function fileOf(path: string, bytes: Uint8Array): DraftFile {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!text.includes("\0")) return { path, text };
  } catch {
    // not text
  }
  return { path, base64: toBase64(bytes) };
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(binary);
}

/** bytesOf returns the bytes of a file. */
export function bytesOf(file: DraftFile): Uint8Array<ArrayBuffer> {
  if (file.base64 === undefined) return new TextEncoder().encode(file.text ?? "");
  return Uint8Array.from(atob(file.base64), (c) => c.charCodeAt(0));
}

/** sizeOf returns the size of a file without encoding it. */
export function sizeOf(file: DraftFile): number {
  if (file.base64 === undefined) return new TextEncoder().encode(file.text ?? "").length;
  const padding = file.base64.endsWith("==") ? 2 : file.base64.endsWith("=") ? 1 : 0;
  return (file.base64.length / 4) * 3 - padding;
}

/** The fault of a new path. */
type PathFault = "empty" | "shape" | "taken" | "through";

/**
 * faultOf checks a new path against the other files. The hub also refuses names that some systems
 * cannot store.
 */
export function faultOf(path: string, files: DraftFile[]): PathFault | undefined {
  if (!path.trim()) return "empty";
  const parts = path.split("/");
  if (path.length > 1024 || /[\\\0-\x1f]/.test(path) || parts.some((p) => p === "" || p === "." || p === ".."))
    return "shape";
  const folded = path.toLowerCase();
  for (const { path: other } of files) {
    const o = other.toLowerCase();
    if (o === folded) return "taken";
    if (o.startsWith(folded + "/") || folded.startsWith(o + "/")) return "through";
  }
  return undefined;
}

/** The MIME types of pictures with a preview. */
const pictures: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
};

const ending = (path: string) => path.slice(path.lastIndexOf(".") + 1).toLowerCase();

/** pictureType returns the MIME type of a picture by its path. */
export const pictureType = (path: string): string | undefined => pictures[ending(path)];

type EditorLanguage = "markdown" | "json" | "yaml" | "text" | "python" | "shell" | "javascript";

const languages: Record<string, EditorLanguage> = {
  md: "markdown",
  markdown: "markdown",
  json: "json",
  yaml: "yaml",
  yml: "yaml",
  py: "python",
  sh: "shell",
  bash: "shell",
  js: "javascript",
  mjs: "javascript",
  cjs: "javascript",
  ts: "javascript",
};

/** languageOf returns the editor language for a path. */
export const languageOf = (path: string): EditorLanguage => languages[ending(path)] ?? "text";
