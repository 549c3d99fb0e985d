import type { Schema } from "../api/client";

/** The kinds that are edited here. */
export const agentKinds = ["Ghost", "Bot", "Team", "Model"] as const;
export type AgentKind = (typeof agentKinds)[number];
export type Kind = AgentKind | "MCPServer";

/** Names a thing of another kind. */
export interface Ref {
  name: string;
  namespace?: string;
}

/** Says precisely which skill is meant by a name. */
export interface SkillRef {
  skill_id?: string;
  namespace?: string;
  is_public?: boolean;
  content_hash?: string;
}

/** What a Ghost has, and a Bot besides. Without skills all are meant, with an empty list none. */
export interface Selection {
  skills?: string[];
  preload_skills?: string[];
  skill_refs?: Record<string, SkillRef>;
  mcpServers?: unknown;
}

export interface GhostSpec extends Selection {
  systemPrompt?: string;
  expose?: "meta" | "direct";
  policy?: string[];
}

export interface BotSpec extends Selection {
  ghostRef?: Ref;
  modelRef?: Ref;
}

export interface Member {
  botRef: Ref;
  prompt?: string;
  role?: string;
  requireConfirmation?: boolean;
}

export interface TeamSpec {
  members?: Member[];
  collaborationModel?: string;
}

export interface ModelSpec {
  vendor?: string;
  model?: string;
  baseUrl?: string;
  apiKey?: string;
}

/** A document as it is written. The API leaves the spec open, as it is of each kind's own shape: the hub gives it back in the shapes above. */
export interface Doc<Spec extends object = object> {
  apiVersion: string;
  kind: Kind;
  metadata: { name: string; namespace: string; description?: string };
  spec: Spec;
}

/** Where a thing is. */
export interface Place {
  kind: Kind;
  namespace: string;
  name: string;
}

/** The document of a thing as the hub has it, without what is only said about it. */
export function docOf(k: Schema["Kind"]): Doc {
  return { apiVersion: k.apiVersion, kind: k.kind as Kind, metadata: { ...k.metadata }, spec: (k.spec as object | undefined) ?? {} };
}

const beginnings: Record<Kind, object> = {
  Ghost: { systemPrompt: "" },
  Bot: {},
  Team: { members: [] },
  Model: { vendor: "openai" },
  MCPServer: { url: "" },
};

/** A document to begin with. */
export const newDoc = (kind: Kind, namespace = "default"): Doc => ({ apiVersion: "loadout/v1", kind, metadata: { name: "", namespace }, spec: beginnings[kind] });

/** An object without what is empty, so that what was filled and emptied again is no change. */
function without<T extends object>(spec: T): T {
  return Object.fromEntries(Object.entries(spec).filter(([, v]) => v !== undefined && v !== "")) as T;
}

/** The document as it is sent: nothing in it that says nothing. */
export function sent(doc: Doc): Doc {
  const { description, ...rest } = doc.metadata;
  return { ...doc, metadata: { ...rest, ...(description ? { description } : {}) }, spec: doc.kind === "MCPServer" ? doc.spec : without(doc.spec) };
}

export const same = (a: Doc, b: Doc) => JSON.stringify(sent(a)) === JSON.stringify(sent(b));

/** The page of a thing. */
export function pageOf({ kind, namespace, name }: Place): string {
  const of = [kind, namespace, name].map(encodeURIComponent).join("/");
  return kind === "MCPServer" ? `/servers/${of}` : `/agents/${of}`;
}

/** How an agent is meant in a conversation. */
export const agentOf = ({ kind, namespace, name }: Place) => `${kind}/${namespace}/${name}`;

/** The path of something of the API that is about a thing. */
export const pathOf = (p: Place) => ({ path: { kind: p.kind, namespace: p.namespace, name: p.name } });
