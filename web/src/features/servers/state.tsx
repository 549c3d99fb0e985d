import type { Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Tag } from "../../shared/ui";

export type Server = Schema["Server"];
type Look = "good" | "warn" | "bad" | "accent" | "";

/** The state of a server: a label, an explanation and a color. */
interface StateText {
  look: Look;
  word: string;
  says: string;
}

/** describeState returns the state of a server. Reasons that block its use come before the connection state. */
export function describeState(s: Server): StateText {
  if (s.state !== "ready") {
    const look: Record<Exclude<Server["state"], "ready">, Look> = {
      not_configured: "warn",
      waits_for_review: "warn",
      rejected: "bad",
      disabled: "",
    };
    return { look: look[s.state], word: msg(`servers.states.${s.state}`), says: msg(`servers.stateSays.${s.state}`) };
  }
  if (s.signIn && s.signIn.state !== "signed_in") {
    const { state } = s.signIn;
    return { look: "warn", word: msg(`serverSignIn.${state}`), says: msg(`serverSignIn.says.${state}`) };
  }
  if (!s.live) return { look: "", word: msg("servers.unneeded"), says: msg("servers.unneededSays") };
  const look: Record<NonNullable<Server["live"]>["state"], Look> = {
    INIT: "",
    READY: "good",
    DEGRADED: "warn",
    DEAD: "bad",
  };
  return {
    look: look[s.live.state],
    word: msg(`servers.lives.${s.live.state}`),
    says: msg(`servers.liveSays.${s.live.state}`),
  };
}

export function StandingTag({ server }: { server: Server }) {
  const { look, word, says } = describeState(server);
  return (
    <Tag look={look} title={says}>
      {word}
    </Tag>
  );
}

/** definedAt returns the page that edits the server. */
export function definedAt(s: Server): string | undefined {
  if (!s.kind) return undefined;
  return s.kind === "MCPServer"
    ? href(s) + "/edit"
    : `/agents/${s.kind}/${encodeURIComponent(s.namespace ?? "default")}/${encodeURIComponent(s.thing ?? "")}?tab=servers`;
}

/** href returns the page of a server. */
export function href(s: Pick<Server, "kind" | "namespace" | "thing" | "name">): string {
  if (!s.kind) return `/servers/operator/${encodeURIComponent(s.name)}`;
  const of = [s.kind, s.namespace ?? "default", s.thing ?? s.name, ...(s.kind === "MCPServer" ? [] : [s.name])];
  return "/servers/" + of.map(encodeURIComponent).join("/");
}

/** trialOf returns the request that tests a server. */
export function trialOf(s: Server): Schema["ServerTrial"] {
  if (!s.kind) return { server: s.name };
  return {
    kind: s.kind as "Ghost",
    namespace: s.namespace,
    name: s.thing,
    ...(s.kind === "MCPServer" ? {} : { server: s.name }),
  };
}
