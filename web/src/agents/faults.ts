import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Schema } from "../api/client";
import type { Kind } from "./document";

/** Something that the hub says of a document, and where in it that is. */
export interface Fault extends Pick<Schema["Diagnostic"], "severity" | "code" | "message" | "fix"> {
  path: string;
}

/** What was said of the document that is being edited. */
export const Faults = createContext<Fault[]>([]);

/** What is wrong with one value, and with all below it if said so. */
export function useFault(path: string, below = false): string | undefined {
  const found = useContext(Faults).filter((f) => f.severity === "error" && (f.path === path || (below && (f.path.startsWith(path + ".") || f.path.startsWith(path + "[")))));
  return found.map((f) => (f.fix ? `${f.message}: ${f.fix}` : f.message)).join("; ") || undefined;
}

/** Where findings are that the hub tells of the thing as a whole, by what they are about. */
function wholly(d: Schema["Diagnostic"], kind: Kind): string | undefined {
  if (d.code === "ref-missing") return "spec." + (d.message.split(":")[0] ?? "");
  if (d.code === "skill-ref" || d.code === "skill-missing") return "spec.skills";
  if (d.code === "address-private") return kind === "Model" ? "spec.baseUrl" : kind === "MCPServer" ? "spec" : "spec.mcpServers";
  if (d.code === "document-namespace") return "metadata.namespace";
  return undefined;
}

/** Findings with their places, by the lines of what was sent. */
export function located(findings: Schema["Diagnostic"][], paths: string[], kind: Kind): Fault[] {
  return findings.map((d) => {
    const at = paths[d.line - 1] ?? "";
    const path = at === "metadata.name" && d.code !== "document-name" ? (wholly(d, kind) ?? "") : at;
    return { severity: d.severity, code: d.code, message: d.message, fix: d.fix, path };
  });
}
