import type { Schema } from "../api/client";
import { Tag } from "../ui";
import { w as signWords } from "./signwords";
import { w } from "./words";

export type Server = Schema["Server"];
type Look = "good" | "warn" | "bad" | "accent" | "";

/** How it is with a server in a word, and in a sentence. */
interface Standing {
  look: Look;
  word: string;
  says: string;
}

/** What keeps a server from being used counts before whether it is connected. */
export function standing(s: Server): Standing {
  const t = w();
  if (s.state !== "ready") {
    const look: Record<Exclude<Server["state"], "ready">, Look> = { not_configured: "warn", waits_for_review: "warn", rejected: "bad", disabled: "" };
    return { look: look[s.state], word: t.states[s.state], says: t.stateSays[s.state] };
  }
  if (s.signIn && s.signIn.state !== "signed_in") {
    const { needed, ended, says } = signWords();
    return { look: "warn", word: s.signIn.state === "needed" ? needed : ended, says: says[s.signIn.state] };
  }
  if (!s.live) return { look: "", word: t.unneeded, says: t.unneededSays };
  const look: Record<NonNullable<Server["live"]>["state"], Look> = { INIT: "", READY: "good", DEGRADED: "warn", DEAD: "bad" };
  return { look: look[s.live.state], word: t.lives[s.live.state], says: t.liveSays[s.live.state] };
}

export function StandingTag({ server }: { server: Server }) {
  const { look, word, says } = standing(server);
  return <Tag look={look} title={says}>{word}</Tag>;
}

/** Where the definition of a server is edited. */
export function definedAt(s: Server): string | undefined {
  if (!s.kind) return undefined;
  return s.kind === "MCPServer" ? href(s) + "/edit" : `/agents/${s.kind}/${encodeURIComponent(s.namespace ?? "default")}/${encodeURIComponent(s.thing ?? "")}?tab=servers`;
}

/** The page of a server. */
export function href(s: Pick<Server, "kind" | "namespace" | "thing" | "name">): string {
  if (!s.kind) return `/servers/operator/${encodeURIComponent(s.name)}`;
  const of = [s.kind, s.namespace ?? "default", s.thing ?? s.name, ...(s.kind === "MCPServer" ? [] : [s.name])];
  return "/servers/" + of.map(encodeURIComponent).join("/");
}

/** How a server is meant when it is tried. */
export function trialOf(s: Server): Schema["ServerTrial"] {
  if (!s.kind) return { server: s.name };
  return { kind: s.kind as "Ghost", namespace: s.namespace, name: s.thing, ...(s.kind === "MCPServer" ? {} : { server: s.name }) };
}
