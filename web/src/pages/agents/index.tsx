import { useLocation } from "preact-iso";
import { agentKinds, type AgentKind } from "../../features/resources/document";
import type { TestChatPart } from "../../features/resources/testchat";
import { decoded } from "../../shared/api/route";
import { lazyPart } from "../../shared/ui/lazypart";
import { List } from "./list";
import "../../features/resources/resources.css";

// The list loads without the editors.
const EditExisting = lazyPart(() => import("../../features/resources/editor").then((m) => m.EditExisting));
const EditNew = lazyPart(() => import("../../features/resources/editor").then((m) => m.EditNew));
const AgentForm = lazyPart(() => import("./agentform").then((m) => m.AgentForm));

/**
 * The addresses of the agents that were created, in order. The form of a new agent stays the same when the agent is
 * created, with the conversation beside it.
 */
const created: string[] = [];

const isKind = (kind: string | undefined): kind is AgentKind => agentKinds.includes(kind as AgentKind);

/** Agents shows the list of agents and models, the form of an agent, or the editor of a document. */
export default function Agents({ TestChat }: { TestChat: TestChatPart }) {
  const { path, query, route } = useLocation();
  const [kind, namespace, name] = path.split("/").slice(2).map(decoded);
  if (kind === "new" && isKind(query.kind))
    return <EditNew key={query.kind} kind={query.kind} namespace={query.namespace} />;
  if (kind === "new" || (kind === "edit" && namespace && name)) {
    const place = kind === "edit" ? { namespace: namespace!, name: name!, kind: query.kind } : undefined;
    const at = place ? created.lastIndexOf(path) : created.length;
    const id = at < 0 ? path : `new ${at}`;
    const onCreated = (to: string) => {
      created.push(to);
      route(to, true);
    };
    return <AgentForm key={id} id={id} TestChat={TestChat} place={place} onCreated={onCreated} />;
  }
  if (isKind(kind) && namespace && name) return <EditExisting key={path} place={{ kind, namespace, name }} />;
  return <List />;
}
