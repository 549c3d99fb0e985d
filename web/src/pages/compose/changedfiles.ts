import { unified } from "../../shared/content/makediff";
import type { DraftFile } from "./files";

/** A file that differs from the saved one. */
export interface Changed {
  path: string;
  how: "added" | "removed" | "changed";
  /** The unified diff, undefined for a file that is not text. */
  diff?: string;
}

/** changes returns the changed files, SKILL.md first. */
export function changes(saved: DraftFile[], files: DraftFile[]): Changed[] {
  const was = new Map(saved.map((f) => [f.path, f]));
  const is = new Map(files.map((f) => [f.path, f]));
  const out: Changed[] = [];
  for (const path of [...new Set([...was.keys(), ...is.keys()])].sort()) {
    const a = was.get(path),
      b = is.get(path);
    if (a && b && a.text === b.text && a.base64 === b.base64) continue;
    const text = a?.base64 === undefined && b?.base64 === undefined;
    out.push({
      path,
      how: a ? (b ? "changed" : "removed") : "added",
      diff: text ? unified(a?.text ?? "", b?.text ?? "") : undefined,
    });
  }
  return out.sort((a, b) => Number(b.path === "SKILL.md") - Number(a.path === "SKILL.md"));
}
