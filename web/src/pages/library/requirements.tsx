import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { RequestedPermissions, unsealed } from "../../features/skills/permissions";
import type { Schema } from "../../shared/api/client";
import { count } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Shown, Tag } from "../../shared/ui";
import { Graph } from "./graph";
import type { Looked } from "./opened";
import { useRequirements } from "./versionfiles";

/** Needs shows the requirements, provided tools and cost of a skill. */
export function Needs({ look }: { look: Looked }) {
  const { skill, version } = look;
  const stated = useRequirements(skill.id, version.number);

  return (
    <div class="stack loose library-connect">
      <Section title={msg("skill.asksFor")} text={msg("skill.asksForText")}>
        <Shown asked={stated} waiting={msg("skill.waitingAsks")}>
          {({ asks, problems }) => (
            <>
              {asks.more.length ? <RequestedPermissions asks={asks.more} /> : <p>{msg("skill.asksNothing")}</p>}
              {problems.map((p, i) => (
                <p key={i} class="small muted">
                  {p}
                </p>
              ))}
            </>
          )}
        </Shown>
      </Section>
      {stated.data && <ProvidedServers stated={stated.data} />}
      <Section title={msg("skill.needs")} text={msg("skill.needsText")}>
        {stated.data && <Graph look={look} stated={stated.data} />}
      </Section>
      <Section title={msg("skill.cost")} text={msg("skill.costText")}>
        <Cost look={look} />
      </Section>
    </div>
  );
}

/** Section is a titled part of the page with an introduction. */
export function Section({ title, text, children }: { title: string; text: string; children: ComponentChildren }) {
  return (
    <section class="card stack">
      <div>
        <h2>{title}</h2>
        <p class="small muted">{text}</p>
      </div>
      {children}
    </section>
  );
}

/** Cost shows the context cost of a skill. */
function Cost({ look: { skill, version } }: { look: Looked }) {
  return (
    <dl class="library-totals">
      <div>
        <dt>{msg("skill.costLine")}</dt>
        <dd>{skill.catalogTokens ? count(skill.catalogTokens) : msg("skill.notTold")}</dd>
      </div>
      <div>
        <dt>{msg("skill.costBody")}</dt>
        <dd>{count(version.tokens)}</dd>
      </div>
    </dl>
  );
}

interface Tool {
  name: string;
  description?: string;
}

/** ProvidedServers lists the MCP servers and tools of a skill. */
function ProvidedServers({ stated }: { stated: Schema["SkillDiff"] }) {
  const tools = useMemo(() => toolsIn(stated), [stated]);
  const of = (kind: string) => stated.asks.more.filter((a) => a.kind === kind);
  const servers = of("server");

  if (!servers.length && !tools.length) return null;
  return (
    <Section title={msg("skill.brings")} text={msg("skill.bringsText")}>
      <ul class="library-lines">
        {servers.map((s) => (
          <li key={s.name} class="stack tight">
            <div class="row">
              <Tag>{msg("skill.server")}</Tag>
              <strong>{s.name}</strong>
            </div>
            <code class="mono muted">{unsealed(s.new ?? "")}</code>
            {of("variable")
              .filter((v) => v.name.endsWith(` to the server ${s.name}`))
              .map((v) => (
                <span key={v.name} class="small muted">
                  {msg("skill.variable", { n: v.name.slice(0, -` to the server ${s.name}`.length) })}
                </span>
              ))}
          </li>
        ))}
        {tools.map((tool) => (
          <li key={tool.name} class="stack tight">
            <div class="row">
              <Tag>{msg("skill.tool")}</Tag>
              <strong>{tool.name}</strong>
            </div>
            {tool.description && <span class="muted">{tool.description}</span>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** toolsIn returns the declared tools. It returns none if the declaration is too long. */
function toolsIn(stated: Schema["SkillDiff"]): Tool[] {
  const written = stated.fields.find((f) => f.name === "tools")?.new;
  if (!written) return [];
  try {
    const all: unknown = JSON.parse(written);
    return Array.isArray(all) ? all.filter((one): one is Tool => typeof one?.name === "string") : [];
  } catch {
    return [];
  }
}
