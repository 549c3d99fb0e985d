/** A file of a skill that is being written: its text, or its bytes where that is no text. */
export interface DraftFile {
  path: string;
  text?: string;
  base64?: string;
}

export const skillFile = "SKILL.md";

/** A file of bytes: text where they are that, as nearly all are. */
export function fileOf(path: string, bytes: Uint8Array): DraftFile {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!text.includes("\0")) return { path, text };
  } catch {
    // then it is no text
  }
  return { path, base64: toBase64(bytes) };
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(binary);
}

/** The bytes of a file. */
export function bytesOf(file: DraftFile): Uint8Array<ArrayBuffer> {
  if (file.base64 === undefined) return new TextEncoder().encode(file.text ?? "");
  return Uint8Array.from(atob(file.base64), (c) => c.charCodeAt(0));
}

/** How large a file is, without making its bytes. */
export function sizeOf(file: DraftFile): number {
  if (file.base64 === undefined) return new TextEncoder().encode(file.text ?? "").length;
  const padding = file.base64.endsWith("==") ? 2 : file.base64.endsWith("=") ? 1 : 0;
  return (file.base64.length / 4) * 3 - padding;
}

/** What is wrong with a path for a new file. */
type PathFault = "empty" | "shape" | "taken" | "through";

/** Finds out whether a file may have a path beside the others; the hub says more of names that some systems refuse. */
export function faultOf(path: string, files: DraftFile[]): PathFault | undefined {
  if (!path.trim()) return "empty";
  const parts = path.split("/");
  if (path.length > 1024 || /[\\\0-\x1f]/.test(path) || parts.some((p) => p === "" || p === "." || p === "..")) return "shape";
  const folded = path.toLowerCase();
  for (const { path: other } of files) {
    const o = other.toLowerCase();
    if (o === folded) return "taken";
    if (o.startsWith(folded + "/") || folded.startsWith(o + "/")) return "through";
  }
  return undefined;
}

/** The kinds of picture that are shown. */
const pictures: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" };

const ending = (path: string) => path.slice(path.lastIndexOf(".") + 1).toLowerCase();

/** The type of a picture by its path, where it is one. */
export const pictureType = (path: string): string | undefined => pictures[ending(path)];

type EditorLanguage = "markdown" | "json" | "yaml" | "text" | "python" | "shell" | "javascript";

const languages: Record<string, EditorLanguage> = {
  md: "markdown", markdown: "markdown", json: "json", yaml: "yaml", yml: "yaml", py: "python",
  sh: "shell", bash: "shell", js: "javascript", mjs: "javascript", cjs: "javascript", ts: "javascript",
};

/** What a file is written in, by its path. */
export const languageOf = (path: string): EditorLanguage => languages[ending(path)] ?? "text";
