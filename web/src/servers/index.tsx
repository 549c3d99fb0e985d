import { decoded } from "../api/address";
import { lazy, useLocation } from "preact-iso";
import { Detail } from "./detail";
import { List } from "./list";
import "./servers.css";

// The list is fetched without the editor.
const EditServer = lazy(() => import("./edit").then((m) => m.EditServer));

/** All MCP servers, one of them, and the editor of those that are added here. */
export default function Servers() {
  const { path } = useLocation();
  const [kind, namespace, thing, last] = path.split("/").slice(2).map(decoded);
  if (kind === "new") return <EditServer />;
  if (kind === "MCPServer" && namespace && thing && last === "edit") return <EditServer key={path} namespace={namespace} name={thing} />;
  if (kind === "operator" && namespace) return <Detail key={path} name={namespace} />;
  if (kind && namespace && thing) return <Detail key={path} kind={kind} namespace={namespace} thing={thing} name={last ?? thing} />;
  return <List />;
}
