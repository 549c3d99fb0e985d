import type { Schema } from "../api/client";
import { Diff } from "../content";
import { Tag } from "../ui";
import { size } from "../words";
import { Asks } from "./asks";
import { marksOf, Said } from "./marks";
import { d } from "./words-detail";

type SkillDiff = Schema["SkillDiff"];

/** Whether two versions differ at all. */
export const differs = (diff: SkillDiff) => diff.old?.digest !== diff.new?.digest;

/** How two versions of a skill differ: what it asks for, what it says of itself, its files, and what a scan finds. */
export function Compared({ diff }: { diff: SkillDiff }) {
  const t = d();
  if (!differs(diff)) return <p class="note">{t.same}</p>;
  return (
    <div class="stack loose">
      <p>{t.changed(diff.files.length, diff.same, diff.findings.new.length, diff.findings.gone)}</p>
      {diff.problems.length > 0 && <ul class="note warn small">{diff.problems.map((p, i) => <li key={i}>{p}</li>)}</ul>}
      {diff.asks.more.length > 0 && <section class="note warn"><h3>{t.asksMore}</h3><p class="small muted">{t.asksMoreText}</p><Asks asks={diff.asks.more} /></section>}
      {diff.asks.less.length > 0 && <section class="note"><h3>{t.asksLess}</h3><Asks asks={diff.asks.less} /></section>}
      {!diff.asks.more.length && !diff.asks.less.length && <p class="note good">{t.asksSame}</p>}
      {diff.fields.length > 0 && <Fields fields={diff.fields} />}
      <section class="stack">
        <h3>{t.filesChanged}</h3>
        {diff.files.map((f) => <File key={f.path} file={f} diff={diff} />)}
      </section>
    </div>
  );
}

function Fields({ fields }: { fields: Schema["DiffField"][] }) {
  const t = d();
  return (
    <section class="stack tight">
      <h3>{t.fieldsChanged}</h3>
      <div class="table-wrap">
        <table class="table library-fields">
          <thead><tr><th scope="col">{t.field}</th><th scope="col">{t.before}</th><th scope="col">{t.after}</th></tr></thead>
          <tbody>{fields.map((f) => <tr key={f.name}><th scope="row">{t.fields[f.name as keyof typeof t.fields] ?? f.name}</th><td>{f.old || <span class="muted">{t.nothing}</span>}</td><td>{f.new || <span class="muted">{t.nothing}</span>}</td></tr>)}</tbody>
        </table>
      </div>
    </section>
  );
}

/** One file that differs, with its lines and what a scan newly finds in them. */
function File({ file, diff }: { file: Schema["DiffFile"]; diff: SkillDiff }) {
  const t = d();
  const main = /^skill\.md$/i.test(file.path);
  const lines = file.diff ?? (main ? diff.instructions : undefined);
  const found = diff.findings.new.filter((f) => f.file === file.path);
  return (
    <details class="library-file" open={main || found.length > 0 || diff.files.length <= 5}>
      <summary>
        <span class="mono grow">{file.from ? `${file.from} → ${file.path}` : file.path}</span>
        {file.script && <Tag look="warn">{t.script}</Tag>}
        {found.length > 0 && <Tag look="warn">{t.foundNew(found.length)}</Tag>}
        <Tag>{t.changes[file.change]}</Tag>
        <span class="small muted nowrap">{file.text ? t.lines(file.added, file.removed) : `${size(file.old_size)} → ${size(file.new_size)}`}</span>
      </summary>
      {found.filter((f) => f.line === 0).map((f, i) => <div key={i} class="library-pad"><Said finding={f} /></div>)}
      {lines ? <Diff diff={lines} path={file.path} marks={marksOf(found)} /> : <p class="small muted library-pad">{file.omitted || t.noLines}</p>}
    </details>
  );
}
