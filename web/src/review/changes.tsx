import { api, got, type Schema, useAsked } from "../api/client";
import { Diff, type Mark } from "../content";
import { Shown, Tag } from "../ui";
import { FileText } from "./file";
import { anchor } from "./findings";
import type { Loaded } from "./version";
import { w } from "./words";

/** What a version has that another has not; against nothing, all its files. */
export function Changes({ all, from, sides }: { all: Loaded; from: number; sides: boolean }) {
  if (!from) return <Whole all={all} />;
  return <Against all={all} from={from} sides={sides} />;
}

/** What is said about lines of a file. */
function marksOf(scan: Schema["Scan"], path: string): Mark[] {
  return scan.findings.filter((f) => f.file === path).map((f) => ({ line: f.line, level: f.severity === "high" ? "bad" : f.severity === "medium" ? "warn" : "info", say: <>{f.message} <span class="muted">{f.advice}</span></> }));
}

function Whole({ all }: { all: Loaded }) {
  const t = w();
  const { skill, version } = all;
  const diff = useAsked((signal) => got(api.GET("/api/v1/skills/{skill}/versions/{version}/diff", { params: { path: { skill: skill.id, version: String(version.number) }, query: { from: "none" } }, signal })), [skill.id, version.number]);
  return (
    <section class="stack" aria-labelledby="review-changes">
      <Shown asked={diff}>{(d) => <Asks asks={d.asks} />}</Shown>
      <h2 id="review-changes">{t.fileList}</h2>
      {all.manifest.files.map((f) => (
        <details key={f.path} id={anchor(f.path)} class="review-file" open={f.script || f.path === "SKILL.md"}>
          <summary><code>{f.path}</code> {f.script && <Tag look="accent">{t.script}</Tag>}</summary>
          <FileText skill={all.skill.id} version={all.version.number} path={f.path} marks={marksOf(all.scan, f.path)} />
        </details>
      ))}
    </section>
  );
}

function Against({ all, from, sides }: { all: Loaded; from: number; sides: boolean }) {
  const t = w();
  const { skill, version } = all;
  const diff = useAsked((signal) => got(api.GET("/api/v1/skills/{skill}/versions/{version}/diff", { params: { path: { skill: skill.id, version: String(version.number) }, query: { from: String(from) } }, signal })), [skill.id, version.number, from]);
  const approved = all.versions.find((v) => v.number === from)?.review === "approved";
  return (
    <section class="stack" aria-labelledby="review-changes">
      <h2 id="review-changes">{approved ? t.sinceApproved(from) : t.since(from)}</h2>
      <Shown asked={diff}>
        {(d) => (
          <>
            {d.problems.map((p) => <p key={p} class="note warn">{p}</p>)}
            <Asks asks={d.asks} />
            <Fields fields={d.fields} />
            {d.instructions && <Changed path="SKILL.md" diff={d.instructions} marks={marksOf(all.scan, "SKILL.md")} sides={sides} />}
            {d.files.filter((f) => f.path !== "SKILL.md" || f.diff).map((f) => <Changed key={f.path} path={f.path} file={f} diff={f.diff} marks={marksOf(all.scan, f.path)} sides={sides} />)}
          </>
        )}
      </Shown>
    </section>
  );
}

function Changed({ path, file, diff, marks, sides }: { path: string; file?: Schema["DiffFile"]; diff?: string; marks: Mark[]; sides: boolean }) {
  const t = w();
  return (
    <details open class="review-file" id={anchor(path)}>
      <summary><code>{path}</code> {file && <><Tag>{t[file.change]}</Tag>{file.script && <Tag look="accent">{t.script}</Tag>}<span class="small muted">{t.lines(file.added, file.removed)}</span></>}</summary>
      {diff ? <Diff diff={diff} path={path} marks={marks} sides={sides} /> : <p class="small muted review-omitted">{file?.omitted ? t.omitted + file.omitted : file?.from}</p>}
    </details>
  );
}

function Asks({ asks }: { asks: Schema["DiffAsks"] }) {
  const t = w();
  if (!asks.more.length && !asks.less.length) return null;
  const list = (title: string, look: "warn" | "good", items: Schema["DiffAsk"][]) =>
    items.length > 0 && <div class={`note ${look}`}><strong>{title}</strong><ul>{items.map((a, i) => <li key={i}>{a.kind} <code>{a.name}</code> {a.old && <del>{a.old}</del>} {a.new}</li>)}</ul></div>;
  return <>{list(t.more, "warn", asks.more)}{list(t.less, "good", asks.less)}</>;
}

function Fields({ fields }: { fields: Schema["DiffField"][] }) {
  if (!fields.length) return null;
  return (
    <div class="card">
      <h3>{w().fields}</h3>
      <dl>{fields.map((f) => <div key={f.name} class="review-field"><dt>{f.name}</dt><dd>{f.old && <del class="muted">{f.old}</del>} {f.new}</dd></div>)}</dl>
    </div>
  );
}
