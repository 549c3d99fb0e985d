import { useState } from "preact/hooks";
import type { Schema } from "../../shared/api/client";
import { Code } from "../../shared/content";
import { count } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Tag } from "../../shared/ui";

type Tool = Schema["ServerTriedTool"];

/** From this number of tools on, the list has a search. */
const many = 8;

/** ToolList lists the tools of a server with their arguments and annotations. */
export function ToolList({ tools }: { tools: Tool[] }) {
  const [q, setQ] = useState("");
  const found = tools.filter((tool) =>
    `${tool.name} ${tool.title ?? ""} ${tool.description ?? ""}`.toLowerCase().includes(q.toLowerCase()),
  );
  if (!tools.length) return <p class="muted">{msg("servers.noTools")}</p>;
  return (
    <div class="stack tight">
      {tools.length > many && (
        <input
          class="input"
          type="search"
          aria-label={msg("servers.searchTools")}
          placeholder={msg("servers.searchTools")}
          value={q}
          onInput={(e) => setQ(e.currentTarget.value)}
        />
      )}
      <p class="small muted" role="status">
        {q && msg("servers.toolsFound", { n: found.length, count: tools.length })}
      </p>
      <ul class="servers-tools">
        {found.map((tool) => (
          <li key={tool.name}>
            <OneTool tool={tool} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function OneTool({ tool }: { tool: Tool }) {
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
        {rows.length > 0 ? (
          <Arguments rows={rows} />
        ) : (
          tool.inputSchema !== undefined && <p class="small muted">{msg("servers.noArguments")}</p>
        )}
        {tool.inputSchema !== undefined && (
          <details>
            <summary class="small">{msg("servers.schema")}</summary>
            <Code text={JSON.stringify(tool.inputSchema, null, 2)} language="json" height="20rem" />
          </details>
        )}
      </div>
    </details>
  );
}

/** Traits shows the annotations of a tool. They are claims of the server; rules decide. */
function Traits({ of }: { of: Tool["annotations"] }) {
  if (!of) return null;
  return (
    <>
      {of.readOnlyHint && (
        <Tag look="good" title={msg("servers.claim")}>
          {msg("servers.readOnly")}
        </Tag>
      )}
      {!of.readOnlyHint && of.destructiveHint && (
        <Tag look="warn" title={msg("servers.claim")}>
          {msg("servers.destructive")}
        </Tag>
      )}
      {of.idempotentHint && !of.readOnlyHint && <Tag title={msg("servers.claim")}>{msg("servers.idempotent")}</Tag>}
      {of.openWorldHint && <Tag title={msg("servers.claim")}>{msg("servers.openWorld")}</Tag>}
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
  return (
    <div
      class="table-wrap"
      tabIndex={0}
      role="region"
      aria-label={msg("servers.argumentCount", { count: rows.length })}
    >
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{msg("servers.argument")}</th>
            <th scope="col">{msg("servers.type")}</th>
            <th scope="col">{msg("servers.about")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.name}>
              <th scope="row">
                <code>{r.name}</code>
                {r.required && <span class="small muted"> {msg("servers.required")}</span>}
              </th>
              <td>
                <code>{r.type}</code>
              </td>
              <td>{r.about}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** argumentsOf returns the simple arguments in a JSON Schema. */
function argumentsOf(schema: unknown): Argument[] {
  const s = schema as { properties?: Record<string, Record<string, unknown>>; required?: unknown } | undefined;
  if (!s || typeof s !== "object" || !s.properties || typeof s.properties !== "object") return [];
  const required = Array.isArray(s.required) ? s.required : [];
  return Object.entries(s.properties).map(([name, p]) => ({
    name,
    type: typeOf(p),
    required: required.includes(name),
    about: typeof p?.description === "string" ? p.description : "",
  }));
}

function typeOf(p: Record<string, unknown> | undefined): string {
  if (!p || typeof p !== "object") return "";
  if (Array.isArray(p.enum))
    return (
      p.enum
        .slice(0, 6)
        .map((v) => JSON.stringify(v))
        .join(" | ") + (p.enum.length > 6 ? ` … ${count(p.enum.length)}` : "")
    );
  if (p.type === "array") return `${typeOf(p.items as Record<string, unknown>) || "any"}[]`;
  if (Array.isArray(p.type)) return p.type.join(" | ");
  return typeof p.type === "string" ? p.type : "";
}
