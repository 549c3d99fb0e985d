import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Schema } from "../api/client";
import { Shown, Tag } from "../ui";
import { count } from "../words";
import { Asks, unsealed } from "./asks";
import type { Looked } from "./detail";
import { Graph } from "./graph";
import { useStated } from "./version";
import { d } from "./words-detail";

/** What a skill needs and brings, and what it costs. */
export function Needs({ look }: { look: Looked }) {
  const { skill, version } = look;
  const stated = useStated(skill.id, version.number);
  const t = d();
  return (
    <div class="stack loose library-connect">
      <Section title={t.asksFor} text={t.asksForText}>
        <Shown asked={stated} waiting={t.waitingAsks}>
          {({ asks, problems }) => (
            <>
              {asks.more.length ? <Asks asks={asks.more} /> : <p>{t.asksNothing}</p>}
              {problems.map((p, i) => <p key={i} class="small muted">{p}</p>)}
            </>
          )}
        </Shown>
      </Section>
      {stated.data && <Brought stated={stated.data} />}
      <Section title={t.needs} text={t.needsText}>{stated.data && <Graph look={look} stated={stated.data} />}</Section>
      <Section title={t.cost} text={t.costText}><Cost look={look} /></Section>
    </div>
  );
}

/** A part of a page about a skill, with a line on what it is. */
export function Section({ title, text, children }: { title: string; text: string; children: ComponentChildren }) {
  return (
    <section class="card stack">
      <div><h2>{title}</h2><p class="small muted">{text}</p></div>
      {children}
    </section>
  );
}

/** What a skill takes of the room that a model has. */
function Cost({ look: { skill, version } }: { look: Looked }) {
  const t = d();
  return (
    <dl class="library-totals">
      <div><dt>{t.costLine}</dt><dd>{skill.catalogTokens ? count(skill.catalogTokens) : t.notTold}</dd></div>
      <div><dt>{t.costBody}</dt><dd>{count(version.tokens)}</dd></div>
    </dl>
  );
}

interface Tool {
  name: string;
  description?: string;
}

/** The MCP servers and tools that come with a skill. */
function Brought({ stated }: { stated: Schema["SkillDiff"] }) {
  const tools = useMemo(() => toolsIn(stated), [stated]);
  const of = (kind: string) => stated.asks.more.filter((a) => a.kind === kind);
  const servers = of("server");
  const t = d();
  if (!servers.length && !tools.length) return null;
  return (
    <Section title={t.brings} text={t.bringsText}>
      <ul class="library-lines">
        {servers.map((s) => (
          <li key={s.name} class="stack tight">
            <div class="row"><Tag>{t.server}</Tag><strong>{s.name}</strong></div>
            <code class="mono muted">{unsealed(s.new ?? "")}</code>
            {of("variable").filter((v) => v.name.endsWith(` to the server ${s.name}`)).map((v) => <span key={v.name} class="small muted">{t.variable(v.name.slice(0, -` to the server ${s.name}`.length))}</span>)}
          </li>
        ))}
        {tools.map((tool) => <li key={tool.name} class="stack tight"><div class="row"><Tag>{t.tool}</Tag><strong>{tool.name}</strong></div>{tool.description && <span class="muted">{tool.description}</span>}</li>)}
      </ul>
    </Section>
  );
}

/** The tools that a skill declares; what is too long to be told whole are none. */
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
