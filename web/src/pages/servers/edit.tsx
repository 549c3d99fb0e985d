import { EditExisting, EditNew } from "../../features/resources/editor";

/** EditServer edits a shared server. */
export function EditServer({ namespace, name }: { namespace?: string; name?: string }) {
  if (namespace && name) return <EditExisting place={{ kind: "MCPServer", namespace, name }} />;
  return <EditNew kind="MCPServer" />;
}
