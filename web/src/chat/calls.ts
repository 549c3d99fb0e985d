import type { Call } from "./transcript";
import { w } from "./words";

/** What a call is, to be read at a glance. */
interface Told {
  /** What it does, in words. */
  does: string;
  /** To what, as it is written in the arguments. */
  what: string;
}

type Arguments = Record<string, unknown>;

/** The arguments by which a person knows a call, the first that is there. */
const telling = ["query", "command", "path", "script", "file", "name", "skill", "member", "url", "title"];

/** Says what a call does. */
export function tell(call: Pick<Call, "name" | "args">): Told {
  const args = parsed(call.args);
  if (call.name === "call_tool") {
    const tool = text(args.name) || "call_tool";
    return { does: w().called(toolName(tool)), what: first(inner(args.arguments)) };
  }
  const known = w().call[call.name];
  const path = text(args.path) || text(args.script) || text(args.file);
  const skill = text(args.skill) || text(args.skill_name);
  const what = skill && path ? `${skill}/${path}` : first(args);
  return { does: known ?? w().called(toolName(call.name)), what };
}

/** server__tool as people read it. */
const toolName = (name: string) => name.replace("__", ": ");

/** What the arguments are, as indented JSON; "" where there are none. */
export function shownArguments(args: string): string {
  try {
    const value: unknown = JSON.parse(args);
    const none = value === null || (typeof value === "object" && Object.keys(value as object).length === 0);
    return none ? "" : JSON.stringify(value, null, 2);
  } catch {
    return args;
  }
}

/** A text as indented JSON, where it is an object or a list; else undefined. */
export function asJSON(text: string): string | undefined {
  const begin = text.trimStart()[0];
  if (begin !== "{" && begin !== "[") return undefined;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return undefined;
  }
}

/** The diagram that a call drew. */
export function diagramOf(call: Call): string | undefined {
  if (call.name !== "render_mermaid" || call.state !== "done") return undefined;
  return text(parsed(call.args).code) || undefined;
}

function parsed(args: string): Arguments {
  try {
    return inner(JSON.parse(args));
  } catch {
    return {};
  }
}

const inner = (value: unknown): Arguments => (value && typeof value === "object" && !Array.isArray(value) ? (value as Arguments) : {});
const text = (value: unknown): string => (typeof value === "string" ? value : "");

function first(args: Arguments): string {
  for (const name of telling) if (text(args[name])) return line(text(args[name]));
  return "";
}

const line = (s: string) => (s.length > 120 ? s.slice(0, 120) + "…" : s).replace(/\s+/g, " ").trim();

/** How long something took, in seconds; undefined while that is not known. */
export const took = (begun?: string, ended?: string): number | undefined => (begun && ended ? Math.max(0, Date.parse(ended) - Date.parse(begun)) / 1000 : undefined);
