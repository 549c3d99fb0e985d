import { RequestedPermissions } from "../../features/skills/permissions";
import type { Schema } from "../../shared/api/client";
import { Diff } from "../../shared/content";
import { size } from "../../shared/i18n/format";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Tag } from "../../shared/ui";
import { marksOf, FindingText } from "./findingmarks";
import { changeSummary } from "./phrases";

type SkillDiff = Schema["SkillDiff"];

/** differs reports whether two versions differ. */
export const differs = (diff: SkillDiff) => diff.old?.digest !== diff.new?.digest;

/** Compared shows the differences of two versions: permissions, fields, files and findings. */
export function Compared({ diff }: { diff: SkillDiff }) {
  if (!differs(diff)) return <p class="note">{msg("skill.same")}</p>;
  return (
    <div class="stack loose">
      <p>{changeSummary(diff.files.length, diff.same, diff.findings.new.length, diff.findings.gone)}</p>
      {diff.problems.length > 0 && (
        <ul class="note warn small">
          {diff.problems.map((p, i) => (
            <li key={i}>{p}</li>
          ))}
        </ul>
      )}
      {diff.asks.more.length > 0 && (
        <section class="note warn">
          <h3>{msg("skill.asksMore")}</h3>
          <p class="small muted">{msg("skill.asksMoreText")}</p>
          <RequestedPermissions asks={diff.asks.more} />
        </section>
      )}
      {diff.asks.less.length > 0 && (
        <section class="note">
          <h3>{msg("skill.asksLess")}</h3>
          <RequestedPermissions asks={diff.asks.less} />
        </section>
      )}
      {!diff.asks.more.length && !diff.asks.less.length && <p class="note good">{msg("skill.asksSame")}</p>}
      {diff.fields.length > 0 && <Fields fields={diff.fields} />}
      <section class="stack">
        <h3>{msg("skill.filesChanged")}</h3>
        {diff.files.map((f) => (
          <File key={f.path} file={f} diff={diff} />
        ))}
      </section>
    </div>
  );
}

function Fields({ fields }: { fields: Schema["DiffField"][] }) {
  return (
    <section class="stack tight">
      <h3>{msg("skill.fieldsChanged")}</h3>
      <div class="table-wrap">
        <table class="table library-fields">
          <thead>
            <tr>
              <th scope="col">{msg("skill.field")}</th>
              <th scope="col">{msg("skill.before")}</th>
              <th scope="col">{msg("skill.after")}</th>
            </tr>
          </thead>
          <tbody>
            {fields.map((f) => (
              <tr key={f.name}>
                <th scope="row">{findMsg("skill.fields", f.name) ?? f.name}</th>
                <td>{f.old || <span class="muted">{msg("skill.nothing")}</span>}</td>
                <td>{f.new || <span class="muted">{msg("skill.nothing")}</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** File shows a changed file with its lines and new findings. */
function File({ file, diff }: { file: Schema["DiffFile"]; diff: SkillDiff }) {
  const main = /^skill\.md$/i.test(file.path);
  const lines = file.diff ?? (main ? diff.instructions : undefined);
  const found = diff.findings.new.filter((f) => f.file === file.path);
  return (
    <details class="library-file" open={main || found.length > 0 || diff.files.length <= 5}>
      <summary>
        <span class="mono grow">{file.from ? `${file.from} → ${file.path}` : file.path}</span>
        {file.script && <Tag look="warn">{msg("skill.script")}</Tag>}
        {found.length > 0 && <Tag look="warn">{msg("skill.foundNew", { count: found.length })}</Tag>}
        <Tag>{msg(`skill.changes.${file.change}`)}</Tag>
        <span class="small muted nowrap">
          {file.text
            ? msg("skill.lines", { a: file.added, r: file.removed })
            : `${size(file.old_size)} → ${size(file.new_size)}`}
        </span>
      </summary>
      {found
        .filter((f) => f.line === 0)
        .map((f, i) => (
          <div key={i} class="library-pad">
            <FindingText finding={f} />
          </div>
        ))}
      {lines ? (
        <Diff diff={lines} path={file.path} marks={marksOf(found)} />
      ) : (
        <p class="small muted library-pad">{file.omitted || msg("skill.noLines")}</p>
      )}
    </details>
  );
}
