import { useUserNames } from "../../features/skills/namespaces";
import { fileOf, pageOf, useAddress } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { Markdown, showHiddenCharacters } from "../../shared/content";
import { count, size } from "../../shared/i18n/format";
import { findMsg, msg } from "../../shared/i18n/messages";
import { translateDiagnostic } from "../../shared/servertext";
import { Problem, Shown, Waiting, When } from "../../shared/ui";
import type { Looked } from "./opened";
import { packageSize } from "./phrases";
import { instructions, mainFile, useFile, useManifest, useRequirements } from "./versionfiles";

/** Read shows the instructions and fields of a skill. */
export function Read({ look }: { look: Looked }) {
  const { skill, version } = look;
  const manifest = useManifest(skill.id, version.number);
  return (
    <div class="columns library-read">
      <Shown asked={manifest} waiting={msg("skill.waitingFile")}>
        {(m) => <Instructions look={look} files={m.files} />}
      </Shown>
      <aside class="stack" aria-label={msg("skill.about")}>
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
  // Pictures come from the API, other files open in this page.
  const file = (path: string) => {
    if (!there.has(path)) return undefined;
    if (picture.test(path)) return fileOf(skill.id, version.number, path);
    return `${pageOf(skill.id)}?${new URLSearchParams({ tab: "files", file: path, version: version.current ? "" : String(version.number) })}`;
  };
  if (content.error) return <Problem error={content.error} again={() => void content.again()} />;
  if (!content.data) return <Waiting for={msg("skill.waitingFile")} />;
  if (!("text" in content.data)) return <p class="note">{msg("skill.noText")}</p>;
  const body = instructions(content.data.text);
  return body.trim() ? (
    <article class="card library-article">
      <Markdown text={body} file={file} level={2} />
    </article>
  ) : (
    <p class="note">{msg("skill.noInstructions")}</p>
  );
}

/** The fields that are shown elsewhere on the page. */
const elsewhere = new Set([
  "name",
  "description",
  "displayName",
  "version",
  "mcpServers",
  "tools",
  "provider",
  "config",
  "dependencies",
  "sandbox",
]);

/** About shows the fields of a skill and its source. */
function About({ look: { skill, version } }: { look: Looked }) {
  const person = useUserNames();
  const stated = useRequirements(skill.id, version.number);
  const at = useAddress();

  return (
    <div class="card stack">
      <h2>{msg("skill.about")}</h2>
      <dl class="facts">
        {stated.data?.fields
          .filter((f) => !elsewhere.has(f.name))
          .map((f) => (
            <Fact key={f.name} name={findMsg("skill.fields", f.name) ?? f.name}>
              {showHiddenCharacters(f.new)}
            </Fact>
          ))}
        <Fact name={msg("skill.size")}>{packageSize(size(version.size), version.files, version.scripts)}</Fact>
        {stated.data && (
          <Fact name={msg("skill.needsShort")}>
            <a href={at.with({ tab: "needs" })}>
              {kindsOf(stated.data).join(msg("skill.comma")) || msg("skill.needsNone")}
            </a>
          </Fact>
        )}
        <Fact name={msg("skill.cost")}>{msg("library.tokens", { n: count(version.tokens) })}</Fact>
        <Fact name={msg("skill.uploaded")}>
          {person(version.createdBy)}, <When time={version.created} />
        </Fact>
        {version.source && (
          <Fact name={msg("skill.source")}>
            <SourceLink source={version.source} />
          </Fact>
        )}
        {version.current && skill.publisher && <SignedBy publisher={skill.publisher} />}
        {version.reviewer && (
          <Fact name={msg("skill.reviewed")}>
            {msg("skill.reviewedBy", {
              state: msg(`library.reviews.${version.review}`),
              who: person(version.reviewer),
            })}
            {version.note && <p class="muted">{version.note}</p>}
          </Fact>
        )}
        <Fact name={msg("skill.digest")}>
          <code class="mono">{version.digest.slice(0, 19)}…</code>
        </Fact>
      </dl>
      {stated.error && <Problem error={stated.error} />}
    </div>
  );
}

/** SignedBy shows who signed a version, and when the key expires. */
function SignedBy({ publisher: p }: { publisher: Schema["SkillPublisher"] }) {
  return (
    <Fact name={msg("skill.signedBy")}>
      {p.name} <code class="mono">{p.fingerprint}</code>
      {p.keyExpires && (
        <p class={p.keyExpired ? "note warn" : "muted"}>
          {msg(p.keyExpired ? "skill.keyExpired" : "skill.keyExpires")} <When time={p.keyExpires} />
        </p>
      )}
    </Fact>
  );
}

/** kindsOf returns the labels of the requested permissions, without duplicates. */
function kindsOf({ asks }: Schema["SkillDiff"]): string[] {
  return [...new Set(asks.more.map((a) => findMsg("skill.asks", a.kind) ?? a.kind))];
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** SourceLink shows the source of a skill, linked if it is a web address. */
export function SourceLink({ source }: { source: Schema["SkillSource"] }) {
  const text =
    source.url +
    (source.dir && source.dir !== "." ? ` › ${source.dir}` : "") +
    (source.commit ? ` @ ${source.commit.slice(0, 10)}` : "");
  if (!/^https:\/\//.test(source.url)) return <>{text}</>;
  return (
    <a href={source.url} target="_blank" rel="noopener noreferrer nofollow">
      {text}
    </a>
  );
}

function Diagnostics({ version }: { version: Schema["SkillVersion"] }) {
  if (!version.diagnostics.length) return null;
  return (
    <div class="note warn">
      <strong>{msg("skill.unusual")}</strong>
      <ul class="small">
        {version.diagnostics.map(translateDiagnostic).map((g, i) => (
          <li key={i}>
            {g.line > 0 && <code>{g.line}: </code>}
            {g.message}
            {g.fix && <span class="muted"> {g.fix}</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}
