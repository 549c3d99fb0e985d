import { EditExisting, EditNew } from "../agents/editor";

/** The editor of a server that is added here: a new one, or one that is there. */
export function EditServer({ namespace, name }: { namespace?: string; name?: string }) {
  if (namespace && name) return <EditExisting place={{ kind: "MCPServer", namespace, name }} />;
  return <EditNew kind="MCPServer" />;
}
