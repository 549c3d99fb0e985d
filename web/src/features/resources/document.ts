import type { Schema } from "../../shared/api/client";

/** The resource kinds that this editor supports. */
export const agentKinds = ["Ghost", "Bot", "Team", "Model"] as const;
export type AgentKind = (typeof agentKinds)[number];
export type Kind = AgentKind | "MCPServer";

/** A reference to another resource. */
export interface Ref {
  name: string;
  namespace?: string;
}

/** A reference that pins the skill for a name. */
export interface SkillRef {
  skill_id?: string;
  namespace?: string;
  is_public?: boolean;
  content_hash?: string;
}

/** The skills and servers of an agent. Without `skills` it has all skills, with an empty list none. */
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
  window?: number;
}

/**
 * A resource document. The API leaves the spec untyped, because each kind has its own. The hub
 * returns it in the shapes above.
 */
export interface Doc<Spec extends object = object> {
  apiVersion: string;
  kind: Kind;
  metadata: { name: string; namespace: string; description?: string };
  spec: Spec;
}

/** The kind, namespace and name of a resource. */
export interface ResourceRef {
  kind: Kind;
  namespace: string;
  name: string;
}

/** docOf returns the document of a resource without its status. */
export function docOf(k: Schema["Kind"]): Doc {
  return {
    apiVersion: k.apiVersion,
    kind: k.kind as Kind,
    metadata: { ...k.metadata },
    spec: (k.spec as object | undefined) ?? {},
  };
}

const beginnings: Record<Kind, object> = {
  Ghost: { systemPrompt: "" },
  Bot: {},
  Team: { members: [] },
  Model: { vendor: "openai" },
  MCPServer: { url: "" },
};

/** newDoc returns an empty document. */
export const newDoc = (kind: Kind, namespace = "default"): Doc => ({
  apiVersion: "loadout/v1",
  kind,
  metadata: { name: "", namespace },
  spec: beginnings[kind],
});

/** without removes empty values, so that a field that is filled and emptied again is no change. */
function without<T extends object>(spec: T): T {
  return Object.fromEntries(Object.entries(spec).filter(([, v]) => v !== undefined && v !== "")) as T;
}

/** sent returns the document to send, without empty values. */
export function sent(doc: Doc): Doc {
  const { description, ...rest } = doc.metadata;
  return {
    ...doc,
    metadata: { ...rest, ...(description ? { description } : {}) },
    spec: doc.kind === "MCPServer" ? doc.spec : without(doc.spec),
  };
}

export const same = (a: Doc, b: Doc) => JSON.stringify(sent(a)) === JSON.stringify(sent(b));

/** pageOf returns the page of a resource. */
export function pageOf({ kind, namespace, name }: ResourceRef): string {
  const of = [kind, namespace, name].map(encodeURIComponent).join("/");
  return kind === "MCPServer" ? `/servers/${of}` : `/agents/${of}`;
}

/** agentOf returns the name of an agent in the conversation API. */
export const agentOf = ({ kind, namespace, name }: ResourceRef) => `${kind}/${namespace}/${name}`;

/** pathOf returns the path parameters of a resource in the API. */
export const pathOf = (p: ResourceRef) => ({ path: { kind: p.kind, namespace: p.namespace, name: p.name } });
