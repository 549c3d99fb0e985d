import { RequestedPermissions } from "../../features/skills/permissions";
import { fileOf } from "../../features/skills/skilladdress";
import { api, got, type Schema, useLoad } from "../../shared/api/client";
import { Diff, type Mark } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { translateFinding } from "../../shared/servertext/finding";
import { Shown, Tag } from "../../shared/ui";
import { FileText, readText } from "./file";
import { FileBox } from "./filebox";
import { FileTree } from "./filetree";
import { useLineTools } from "./linecomments";
import type { Loaded } from "./loaded";
import { OtherFiles } from "./otherfiles";

/** Changes shows the changes from another version, or all files. */
export function Changes({ all, from, sides }: { all: Loaded; from: number; sides: boolean }) {
  if (!from) return <Whole all={all} />;
  return <Against all={all} from={from} sides={sides} />;
}

/** marksOf returns the findings of a file as marks. */
function marksOf(scan: Schema["Scan"], path: string): Mark[] {
  return scan.findings
    .filter((f) => f.file === path)
    .map(translateFinding)
    .map((f) => ({
      line: f.line,
      level: f.severity === "high" ? "bad" : f.severity === "medium" ? "warn" : "info",
      say: (
        <>
          {f.message} <span class="muted">{f.advice}</span>
        </>
      ),
    }));
}

function Whole({ all }: { all: Loaded }) {
  const { skill, version } = all;
  const diff = useLoad(
    (signal) =>
      got(
        api.GET("/api/v1/skills/{skill}/versions/{version}/diff", {
          params: { path: { skill: skill.id, version: String(version.number) }, query: { from: "none" } },
          signal,
        }),
      ),
    [skill.id, version.number],
  );
  return (
    <section class="stack" aria-labelledby="review-changes">
      <Shown asked={diff}>{(d) => <PermissionChanges asks={d.asks} />}</Shown>
      <h2 id="review-changes">{msg("review.fileList")}</h2>
      <FileTree files={all.manifest.files} />
      {all.manifest.files.map((f) => (
        <WholeFile key={f.path} all={all} file={f} />
      ))}
      <OtherFiles all={all} from={0} shown={all.manifest.files.map((f) => f.path)} />
    </section>
  );
}

function WholeFile({ all, file: { path, script } }: { all: Loaded; file: Schema["ManifestFile"] }) {
  const tools = useLineTools(path, all.version.number, 0);
  return (
    <FileBox
      path={path}
      open={script || path === "SKILL.md"}
      facts={script && <Tag look="accent">{msg("review.script")}</Tag>}
    >
      <FileText
        skill={all.skill.id}
        version={all.version.number}
        path={path}
        marks={marksOf(all.scan, path)}
        tools={tools}
      />
    </FileBox>
  );
}

function Against({ all, from, sides }: { all: Loaded; from: number; sides: boolean }) {
  const { skill, version } = all;
  const diff = useLoad(
    (signal) =>
      got(
        api.GET("/api/v1/skills/{skill}/versions/{version}/diff", {
          params: { path: { skill: skill.id, version: String(version.number) }, query: { from: String(from) } },
          signal,
        }),
      ),
    [skill.id, version.number, from],
  );
  const approved = all.versions.find((v) => v.number === from)?.review === "approved";
  return (
    <section class="stack" aria-labelledby="review-changes">
      <h2 id="review-changes">
        {approved ? msg("review.sinceApproved", { number: from }) : msg("review.since", { number: from })}
      </h2>
      <Shown asked={diff}>
        {(d) => (
          <>
            {d.problems.map((p) => (
              <p key={p} class="note warn">
                {p}
              </p>
            ))}
            <PermissionChanges asks={d.asks} />
            <Fields fields={d.fields} />
            <FileTree files={changedFiles(d)} />
            {d.instructions && (
              <Changed
                all={all}
                from={from}
                path="SKILL.md"
                file={d.files.find((f) => f.path === "SKILL.md")}
                diff={d.instructions}
                marks={marksOf(all.scan, "SKILL.md")}
                sides={sides}
              />
            )}
            {d.files
              .filter((f) => f.path !== "SKILL.md" || !d.instructions)
              .map((f) => (
                <Changed
                  key={f.path}
                  all={all}
                  from={from}
                  path={f.path}
                  file={f}
                  diff={f.diff}
                  marks={marksOf(all.scan, f.path)}
                  sides={sides}
                />
              ))}
          </>
        )}
      </Shown>
      {(diff.data ?? diff.error) && (
        <OtherFiles all={all} from={from} shown={diff.data ? changedFiles(diff.data).map((f) => f.path) : []} />
      )}
    </section>
  );
}

/** changedFiles returns the files of a diff. */
function changedFiles(d: Schema["SkillDiff"]): Schema["DiffFile"][] | { path: string }[] {
  if (!d.instructions || d.files.some((f) => f.path === "SKILL.md")) return d.files;
  return [{ path: "SKILL.md" }, ...d.files];
}

function Changed({
  all: { skill, version },
  from,
  path,
  file,
  diff,
  marks,
  sides,
}: {
  all: Loaded;
  from: number;
  path: string;
  file?: Schema["DiffFile"];
  diff?: string;
  marks: Mark[];
  sides: boolean;
}) {
  const gone = file?.change === "removed";
  const tools = useLineTools(path, version.number, from, gone);
  const facts = file && (
    <>
      <Tag>{msg(`review.${file.change}`)}</Tag>
      {file.script && <Tag look="accent">{msg("review.script")}</Tag>}
      <span class="small muted">{msg("review.lines", { a: file.added, r: file.removed })}</span>
    </>
  );
  return (
    <FileBox path={path} facts={facts} open>
      {diff ? (
        <Diff
          diff={diff}
          path={path}
          marks={marks}
          sides={sides}
          tools={tools}
          file={gone ? undefined : () => readText(fileOf(skill.id, version.number, path))}
        />
      ) : (
        <>
          <p class="small muted review-omitted">{file?.omitted ? msg("review.omitted") + file.omitted : file?.from}</p>
          {tools.rest(() => false)}
        </>
      )}
    </FileBox>
  );
}

function PermissionChanges({ asks }: { asks: Schema["DiffAsks"] }) {
  if (!asks.more.length && !asks.less.length) return null;
  const list = (title: string, look: "warn" | "good", items: Schema["DiffAsk"][]) =>
    items.length > 0 && (
      <div class={`note ${look}`}>
        <strong>{title}</strong>
        <RequestedPermissions asks={items} />
      </div>
    );
  return (
    <>
      {list(msg("review.more"), "warn", asks.more)}
      {list(msg("review.less"), "good", asks.less)}
    </>
  );
}

function Fields({ fields }: { fields: Schema["DiffField"][] }) {
  if (!fields.length) return null;
  return (
    <div class="card">
      <h3>{msg("review.fields")}</h3>
      <dl>
        {fields.map((f) => (
          <div key={f.name} class="review-field">
            <dt>{f.name}</dt>
            <dd>
              {f.old && <del class="muted">{f.old}</del>} {f.new}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
