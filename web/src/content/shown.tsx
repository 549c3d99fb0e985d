import type { ComponentChildren } from "preact";
import { w } from "./words";

/**
 * Characters that are not seen but change how text reads: those that turn its direction,
 * have no width, or carry words that only a model sees. Reviewers must see them.
 */
const hidden = /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Text of code, with what is invisible in it by its number. */
export function shown(text: string): ComponentChildren {
  if (text.search(hidden) < 0) return text;
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const found of text.matchAll(hidden)) {
    const code = "U+" + found[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    out.push(text.slice(at, found.index), <span key={found.index} class="content-invisible" title={w().hidden(code)}>{code}</span>);
    at = found.index + found[0].length;
  }
  out.push(text.slice(at));
  return out;
}
