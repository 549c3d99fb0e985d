import { useLocation } from "preact-iso";
import { agentKinds, type AgentKind } from "../../features/resources/document";
import { decoded } from "../../shared/api/route";
import { lazyPart } from "../../shared/ui/lazypart";
import { List } from "./list";
import "../../features/resources/resources.css";

// The list loads without the editor.
const EditExisting = lazyPart(() => import("../../features/resources/editor").then((m) => m.EditExisting));
const EditNew = lazyPart(() => import("../../features/resources/editor").then((m) => m.EditNew));

const isKind = (kind: string | undefined): kind is AgentKind => agentKinds.includes(kind as AgentKind);

/** Agents shows the list of agents, teams and models, or the editor of one. */
export default function Agents() {
  const { path, query } = useLocation();
  const [kind, namespace, name] = path.split("/").slice(2).map(decoded);
  if (kind === "new")
    return <EditNew key={query.kind} kind={isKind(query.kind) ? query.kind : "Ghost"} namespace={query.namespace} />;
  if (isKind(kind) && namespace && name) return <EditExisting key={path} place={{ kind, namespace, name }} />;
  return <List />;
}
