import { useState } from "preact/hooks";
import { Code } from "../content";
import type { Schema } from "../api/client";
import { Tag } from "../ui";
import { count } from "../words";
import { w } from "./words";

type Tool = Schema["ServerTriedTool"];

/** From how many on they are searched. */
const many = 8;

/** The tools of a server, each with its arguments and what it says of itself. */
export function ToolList({ tools }: { tools: Tool[] }) {
  const t = w();
  const [q, setQ] = useState("");
  const found = tools.filter((tool) => `${tool.name} ${tool.title ?? ""} ${tool.description ?? ""}`.toLowerCase().includes(q.toLowerCase()));
  if (!tools.length) return <p class="muted">{t.noTools}</p>;
  return (
    <div class="stack tight">
      {tools.length > many && <input class="input" type="search" aria-label={t.searchTools} placeholder={t.searchTools} value={q} onInput={(e) => setQ(e.currentTarget.value)} />}
      <p class="small muted" role="status">{q && t.toolsFound(found.length, tools.length)}</p>
      <ul class="servers-tools">{found.map((tool) => <li key={tool.name}><OneTool tool={tool} /></li>)}</ul>
    </div>
  );
}

function OneTool({ tool }: { tool: Tool }) {
  const t = w();
  const rows = argumentsOf(tool.inputSchema);
  return (
    <details>
      <summary>
        <span class="mono">{tool.name}</span>
        {tool.title && tool.title !== tool.name && <span class="small">{tool.title}</span>}
        <Traits of={tool.annotations} />
        <span class="small muted servers-first">{tool.description?.split("\n")[0]}</span>
      </summary>
      <div class="stack tight servers-tool">
        {tool.description && <p class="servers-text">{tool.description}</p>}
        {rows.length > 0 ? <Arguments rows={rows} /> : tool.inputSchema !== undefined && <p class="small muted">{t.noArguments}</p>}
        {tool.inputSchema !== undefined && <details><summary class="small">{t.schema}</summary><Code text={JSON.stringify(tool.inputSchema, null, 2)} language="json" height="20rem" /></details>}
      </div>
    </details>
  );
}

/** What a tool says of itself. It is a claim: rules decide. */
function Traits({ of }: { of: Tool["annotations"] }) {
  const t = w();
  if (!of) return null;
  return (
    <>
      {of.readOnlyHint && <Tag look="good" title={t.claim}>{t.readOnly}</Tag>}
      {!of.readOnlyHint && of.destructiveHint && <Tag look="warn" title={t.claim}>{t.destructive}</Tag>}
      {of.idempotentHint && !of.readOnlyHint && <Tag title={t.claim}>{t.idempotent}</Tag>}
      {of.openWorldHint && <Tag title={t.claim}>{t.openWorld}</Tag>}
    </>
  );
}

interface Argument {
  name: string;
  type: string;
  required: boolean;
  about: string;
}

function Arguments({ rows }: { rows: Argument[] }) {
  const t = w();
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label={t.argumentCount(rows.length)}>
      <table class="table">
        <thead><tr><th scope="col">{t.argument}</th><th scope="col">{t.type}</th><th scope="col">{t.about}</th></tr></thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.name}><th scope="row"><code>{r.name}</code>{r.required && <span class="small muted"> {t.required}</span>}</th><td><code>{r.type}</code></td><td>{r.about}</td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The arguments that a JSON Schema of an object has, as far as it says them plainly. */
function argumentsOf(schema: unknown): Argument[] {
  const s = schema as { properties?: Record<string, Record<string, unknown>>; required?: unknown } | undefined;
  if (!s || typeof s !== "object" || !s.properties || typeof s.properties !== "object") return [];
  const required = Array.isArray(s.required) ? s.required : [];
  return Object.entries(s.properties).map(([name, p]) => ({ name, type: typeOf(p), required: required.includes(name), about: typeof p?.description === "string" ? p.description : "" }));
}

function typeOf(p: Record<string, unknown> | undefined): string {
  if (!p || typeof p !== "object") return "";
  if (Array.isArray(p.enum)) return p.enum.slice(0, 6).map((v) => JSON.stringify(v)).join(" | ") + (p.enum.length > 6 ? ` … ${count(p.enum.length)}` : "");
  if (p.type === "array") return `${typeOf(p.items as Record<string, unknown>) || "any"}[]`;
  if (Array.isArray(p.type)) return p.type.join(" | ");
  return typeof p.type === "string" ? p.type : "";
}
