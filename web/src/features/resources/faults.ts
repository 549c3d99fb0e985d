import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import type { Kind } from "./document";

/** A diagnostic of the hub with its path in the document. */
export interface Fault extends Pick<Schema["Diagnostic"], "severity" | "code" | "message" | "fix"> {
  path: string;
}

/** The faults of the edited document. */
export const Faults = createContext<Fault[]>([]);

/** useFault returns the fault at a path. With `below` it includes the faults of nested values. */
export function useFault(path: string, below = false): string | undefined {
  const found = useContext(Faults).filter(
    (f) =>
      f.severity === "error" &&
      (f.path === path || (below && (f.path.startsWith(path + ".") || f.path.startsWith(path + "[")))),
  );
  return found.map((f) => (f.fix ? `${f.message}: ${f.fix}` : f.message)).join("; ") || undefined;
}

/** wholly returns the path of the field that a diagnostic of the whole resource belongs to. */
function wholly(d: Schema["Diagnostic"], kind: Kind): string | undefined {
  if (d.code === "ref-missing") return "spec." + (d.message.split(":")[0] ?? "");
  if (d.code === "skill-ref" || d.code === "skill-missing") return "spec.skills";
  if (d.code === "address-private")
    return kind === "Model" ? "spec.baseUrl" : kind === "MCPServer" ? "spec" : "spec.mcpServers";
  if (d.code === "document-namespace" || d.code === "denied") return "metadata.namespace";
  return undefined;
}

/** The diagnostics of the name. Others at its line are of the whole resource. */
const ofName = ["document-name", "document-exists", "document-twice"];

/** located adds paths to diagnostics, by the lines of the sent document. */
export function located(findings: Schema["Diagnostic"][], paths: string[], kind: Kind): Fault[] {
  return findings.map((d) => {
    const at = paths[d.line - 1] ?? "";
    const path = at === "metadata.name" && !ofName.includes(d.code) ? (wholly(d, kind) ?? "") : at;
    const { severity, code } = d;
    if (code === "document-exists")
      return { severity, code, message: msg("agents.nameTaken"), fix: msg("agents.nameTakenFix"), path };
    return { severity, code, message: d.message, fix: d.fix, path };
  });
}
