import type { Schema } from "../api/client";
import { Markdown } from "../content";
import { toldDiagnostic } from "../told";
import { Problem, Shown, Waiting, When } from "../ui";
import { count, size } from "../words";
import { fileOf, pageOf, useAddress } from "./address";
import type { Looked } from "./detail";
import { usePeople } from "./places";
import { instructions, mainFile, useFile, useManifest, useStated } from "./version";
import { d } from "./words-detail";
import { w } from "./words";

/** The instructions of a skill as a person reads them, and what the skill says of itself. */
export function Read({ look }: { look: Looked }) {
  const { skill, version } = look;
  const manifest = useManifest(skill.id, version.number);
  return (
    <div class="columns library-read">
      <Shown asked={manifest} waiting={d().waitingFile}>{(m) => <Instructions look={look} files={m.files} />}</Shown>
      <aside class="stack" aria-label={d().about}>
        <About look={look} />
        <Diagnostics version={version} />
      </aside>
    </div>
  );
}

const picture = /\.(png|jpe?g|gif|webp)$/i;

function Instructions({ look: { skill, version }, files }: { look: Looked; files: Schema["ManifestFile"][] }) {
  const main = mainFile(files);
  const content = useFile(skill.id, version.number, main);
  const there = new Set(files.map((f) => f.path));
  // Pictures are what the API has; other files are shown by this page.
  const file = (path: string) => {
    if (!there.has(path)) return undefined;
    if (picture.test(path)) return fileOf(skill.id, version.number, path);
    return `${pageOf(skill.id)}?${new URLSearchParams({ tab: "files", file: path, version: version.current ? "" : String(version.number) })}`;
  };
  if (content.error) return <Problem error={content.error} again={() => void content.again()} />;
  if (!content.data) return <Waiting for={d().waitingFile} />;
  if (!("text" in content.data)) return <p class="note">{d().noText}</p>;
  const body = instructions(content.data.text);
  return body.trim() ? <article class="card library-article"><Markdown text={body} file={file} level={2} /></article> : <p class="note">{d().noInstructions}</p>;
}

/** Fields that stand elsewhere on the page. */
const elsewhere = new Set(["name", "description", "displayName", "version", "mcpServers", "tools", "provider", "config", "dependencies", "sandbox"]);

/** What the skill says of itself, and where it comes from. */
function About({ look: { skill, version } }: { look: Looked }) {
  const person = usePeople();
  const stated = useStated(skill.id, version.number);
  const at = useAddress();
  const t = d();
  return (
    <div class="card stack">
      <h2>{t.about}</h2>
      <dl class="facts">
        {stated.data?.fields.filter((f) => !elsewhere.has(f.name)).map((f) => <Fact key={f.name} name={t.fields[f.name as keyof typeof t.fields] ?? f.name}>{f.new}</Fact>)}
        <Fact name={t.size}>{t.sizeOf(size(version.size), version.files, version.scripts)}</Fact>
        {stated.data && <Fact name={t.needsShort}><a href={at.with({ tab: "needs" })}>{kindsOf(stated.data).join(t.comma) || t.needsNone}</a></Fact>}
        <Fact name={t.cost}>{w().tokens(count(version.tokens))}</Fact>
        <Fact name={t.uploaded}>{person(version.createdBy)}, <When time={version.created} /></Fact>
        {version.source && <Fact name={t.source}><SourceLink source={version.source} /></Fact>}
        {version.reviewer && <Fact name={t.reviewed}>{t.reviewedBy(w().reviews[version.review], person(version.reviewer))}{version.note && <p class="muted">{version.note}</p>}</Fact>}
        <Fact name={t.digest}><code class="mono">{version.digest.slice(0, 19)}…</code></Fact>
      </dl>
      {stated.error && <Problem error={stated.error} />}
    </div>
  );
}

/** The kinds of what a skill asks for, in words, each once. */
function kindsOf({ asks }: Schema["SkillDiff"]): string[] {
  const names = d().asks;
  return [...new Set(asks.more.map((a) => names[a.kind as keyof typeof names] ?? a.kind))];
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return <><dt>{name}</dt><dd>{children}</dd></>;
}

/** Where a skill was taken from, as a link where that is a web address. */
export function SourceLink({ source }: { source: Schema["SkillSource"] }) {
  const text = source.url + (source.dir && source.dir !== "." ? ` › ${source.dir}` : "") + (source.commit ? ` @ ${source.commit.slice(0, 10)}` : "");
  if (!/^https:\/\//.test(source.url)) return <>{text}</>;
  return <a href={source.url} target="_blank" rel="noopener noreferrer nofollow">{text}</a>;
}

function Diagnostics({ version }: { version: Schema["SkillVersion"] }) {
  if (!version.diagnostics.length) return null;
  return (
    <div class="note warn">
      <strong>{d().unusual}</strong>
      <ul class="small">{version.diagnostics.map(toldDiagnostic).map((g, i) => <li key={i}>{g.line > 0 && <code>{g.line}: </code>}{g.message}{g.fix && <span class="muted"> {g.fix}</span>}</li>)}</ul>
    </div>
  );
}
