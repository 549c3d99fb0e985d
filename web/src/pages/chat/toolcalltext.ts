import { findMsg, msg } from "../../shared/i18n/messages";
import type { Call } from "./transcript";

/** A short description of a call. */
interface CallSummary {
  /** The action, as text. */
  does: string;
  /** The object of the action, from the arguments. */
  what: string;
}

type Arguments = Record<string, unknown>;

/** The arguments that identify a call, in order of preference. */
const summaryArguments = ["query", "command", "path", "script", "file", "name", "skill", "member", "url", "title"];

/** summarizeCall describes a call. */
export function summarizeCall(call: Pick<Call, "name" | "args">): CallSummary {
  const args = parsed(call.args);
  if (call.name === "call_tool") {
    const tool = text(args.name) || "call_tool";
    return { does: msg("chat.called", { tool: toolName(tool) }), what: first(inner(args.arguments)) };
  }
  const known = findMsg("chat.call", call.name);
  const path = text(args.path) || text(args.script) || text(args.file);
  const skill = text(args.skill) || text(args.skill_name);
  const what = skill && path ? `${skill}/${path}` : first(args);
  return { does: known ?? msg("chat.called", { tool: toolName(call.name) }), what };
}

/** toolName formats server__tool for display. */
const toolName = (name: string) => name.replace("__", ": ");

/** shownArguments returns the arguments as indented JSON, "" if there are none. */
export function shownArguments(args: string): string {
  try {
    const value: unknown = JSON.parse(args);
    const none = value === null || (typeof value === "object" && Object.keys(value as object).length === 0);
    return none ? "" : JSON.stringify(value, null, 2);
  } catch {
    return args;
  }
}

/** asJSON returns a text as indented JSON if it is an object or an array. */
export function asJSON(text: string): string | undefined {
  const begin = text.trimStart()[0];
  if (begin !== "{" && begin !== "[") return undefined;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return undefined;
  }
}

/** diagramOf returns the diagram that a call drew. */
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

const inner = (value: unknown): Arguments =>
  value && typeof value === "object" && !Array.isArray(value) ? (value as Arguments) : {};
const text = (value: unknown): string => (typeof value === "string" ? value : "");

function first(args: Arguments): string {
  for (const name of summaryArguments) if (text(args[name])) return line(text(args[name]));
  return "";
}

const line = (s: string) => (s.length > 120 ? s.slice(0, 120) + "…" : s).replace(/\s+/g, " ").trim();

/** elapsed returns the duration in seconds, or undefined while it is unknown. */
export const elapsed = (begun?: string, ended?: string): number | undefined =>
  begun && ended ? Math.max(0, Date.parse(ended) - Date.parse(begun)) / 1000 : undefined;
