import { useLocation } from "preact-iso";
import { List } from "../../features/servers/serverlist";
import { decoded } from "../../shared/api/route";
import { lazyPart } from "../../shared/ui/lazypart";
import { Detail } from "./detail";
import "../../features/servers/servers.css";

// The list loads without the editor.
const EditServer = lazyPart(() => import("./edit").then((m) => m.EditServer));

/** Servers shows the list, a server, or the editor of a shared server. */
export default function Servers() {
  const { path } = useLocation();
  const [kind, namespace, thing, last] = path.split("/").slice(2).map(decoded);
  if (kind === "new") return <EditServer />;
  if (kind === "MCPServer" && namespace && thing && last === "edit")
    return <EditServer key={path} namespace={namespace} name={thing} />;
  if (kind === "operator" && namespace) return <Detail key={path} name={namespace} />;
  if (kind && namespace && thing)
    return <Detail key={path} kind={kind} namespace={namespace} thing={thing} name={last ?? thing} />;
  return <List />;
}
