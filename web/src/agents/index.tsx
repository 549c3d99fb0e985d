import { decoded } from "../api/address";
import { lazy, useLocation } from "preact-iso";
import { agentKinds, type AgentKind } from "./document";
import { List } from "./list";
import "./agents.css";

// The list is fetched without the editor.
const EditExisting = lazy(() => import("./editor").then((m) => m.EditExisting));
const EditNew = lazy(() => import("./editor").then((m) => m.EditNew));

const isKind = (kind: string | undefined): kind is AgentKind => agentKinds.includes(kind as AgentKind);

/** Ghosts, Bots, Teams and Models: all of them, one of them, or a new one. */
export default function Agents() {
  const { path, query } = useLocation();
  const [kind, namespace, name] = path.split("/").slice(2).map(decoded);
  if (kind === "new") return <EditNew key={query.kind} kind={isKind(query.kind) ? query.kind : "Ghost"} namespace={query.namespace} />;
  if (isKind(kind) && namespace && name) return <EditExisting key={path} place={{ kind, namespace, name }} />;
  return <List />;
}
