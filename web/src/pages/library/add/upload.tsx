import { useRef, useState } from "preact/hooks";
import { type Schema, Unreachable } from "../../../shared/api/client";
import { useLimits } from "../../../shared/api/limits";
import { count, size } from "../../../shared/i18n/format";
import { msg } from "../../../shared/i18n/messages";
import { Button, Check, failed, Icon, Problem, Reasons, Tag, TextField } from "../../../shared/ui";
import { packagesOfDrop, packagesOf, type Package } from "./pack";
import { reasonOf } from "./reasons";
import { type Outcome, Summary } from "./summary";
import { enqueue, forget, problemOf, retry, type Upload, uploads } from "./uploads";

/**
 * UploadTab uploads dropped or chosen packages one after the other, and shows their results. With a
 * skill, a package becomes its new version.
 */
export function UploadTab({ namespace, skill }: { namespace: string; skill?: string }) {
  const most = useLimits()?.package;
  const [lenient, setLenient] = useState(false);
  const [over, setOver] = useState(false);
  const [changelog, setChangelog] = useState("");
  const add = (packages: Package[]) => {
    if (skill && packages.length > 1) return failed(new Error(msg("add.oneVersion")));
    enqueue(packages, { namespace, lenient, version: skill ? { skill, changelog: changelog.trim() } : undefined });
  };
  const drop = async (e: DragEvent) => {
    e.preventDefault();
    setOver(false);
    if (e.dataTransfer) add(await packagesOfDrop(e.dataTransfer.items));
  };
  const choose = async (files: FileList | null) => {
    if (files) add(await packagesOf([...files]));
  };
  return (
    <div class="stack">
      {skill && <Changelog value={changelog} onText={setChangelog} />}
      <div
        class={over ? "add-drop over" : "add-drop"}
        onDragOver={(e) => {
          e.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(e) => void drop(e).catch(failed)}
      >
        <Icon name="upload" size={28} />
        <strong>{skill ? msg("add.dropVersion") : msg("add.drop")}</strong>
        <div class="row">
          <Choose text={msg("add.choose")} onFiles={choose} />
          <Choose text={msg("add.folder")} folder onFiles={choose} />
        </div>
        <span class="small muted">
          {most && msg("add.atMost", { most: size(most) })}
          {msg("add.dropHint")}
        </span>
      </div>
      <Check label={msg("add.lenient")} hint={msg("add.lenientHint")} checked={lenient} onCheck={setLenient} />
      {uploads.value.length > 0 && (
        <section class="stack tight" aria-label={msg("add.queue")}>
          <h2>{msg("add.queue")}</h2>
          <ul class="stack tight" aria-live="polite">
            {[...new Set(uploads.value.map((u) => u.batch))].map((batch) => (
              <li key={batch}>
                <Batch all={uploads.value.filter((u) => u.batch === batch)} />
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

/** Choose is a button that opens a file dialog. */
function Choose({
  text,
  folder,
  small,
  onFiles,
}: {
  text: string;
  folder?: boolean;
  small?: boolean;
  onFiles: (files: FileList | null) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button
        small={small}
        icon={folder ? "folder" : "file"}
        look={folder ? "" : "primary"}
        onClick={() => input.current?.click()}
      >
        {text}
      </Button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        accept={folder ? undefined : ".zip,.skill,.md,application/zip"}
        aria-label={text}
        {...(folder && { webkitdirectory: true })}
        onChange={(e) => {
          onFiles(e.currentTarget.files);
          e.currentTarget.value = "";
        }}
      />
    </>
  );
}

/** Batch shows packages that were added together: the one that is being uploaded, and a summary of the others. */
function Batch({ all }: { all: Upload[] }) {
  if (all.length === 1) return <Line upload={all[0]!} />;
  const outcomes = all.flatMap((u) => outcomeOf(u) ?? []);
  const running = all.find((u) => u.state.at !== "waits" && !outcomeOf(u));
  return (
    <div class="stack tight">
      {outcomes.length < all.length && (
        <div class="row add-form">
          <progress class="progress" aria-label={msg("add.queue")} value={outcomes.length} max={all.length} />
          <span class="small muted">
            {msg("add.doneOf", { done: count(outcomes.length), total: count(all.length) })}
          </span>
        </div>
      )}
      {running && <Line upload={running} />}
      <Summary outcomes={outcomes} />
    </div>
  );
}

/** outcomeOf returns what became of a package, or undefined while it waits or is being uploaded. */
function outcomeOf(u: Upload): Outcome | undefined {
  const { state, id: key } = u;
  const shown = <Line upload={u} />;
  if (state.at === "refused") return { kind: "skipped", reason: problemOf(state.error)?.code, key, shown };
  if (state.at !== "done") return undefined;
  return { kind: state.same ? "unchanged" : state.version ? "updated" : "added", key, shown };
}

function Line({ upload: u }: { upload: Upload }) {
  const s = u.state;
  return (
    <div class="card stack tight">
      <div class="row">
        <strong class="truncate">{u.pack.name}</strong>
        {s.at === "done" ? (
          <Tag look="good">
            <Icon name="check" size={14} />
            {s.same ? msg("add.same") : s.version ? msg("add.version", { n: s.version }) : msg("add.done")}
          </Tag>
        ) : s.at === "refused" ? (
          <Tag look="bad">{msg("add.refused")}</Tag>
        ) : (
          <Tag>
            {s.at === "sending" ? msg("add.sending", { percent: Math.floor(s.share * 100) }) : msg(`add.${s.at}`)}
          </Tag>
        )}
        <span class="push row">
          {s.at === "done" && (
            <a class="button small" href={`/library/${s.skill}`}>
              {msg("add.open")}
            </a>
          )}
          {(s.at === "done" || s.at === "refused") && (
            <Button small look="quiet" icon="close" label={msg("add.skip")} onClick={() => forget(u.id)} />
          )}
        </span>
      </div>
      {s.at === "sending" && <progress class="progress" aria-label={u.pack.name} value={s.share} />}
      {s.at === "done" && s.code && (
        <p class="small muted">{s.version ? msg("add.reviewNextVersion") : msg("add.reviewNext")}</p>
      )}
      {s.at === "refused" && <Refused upload={u} error={s.error} />}
    </div>
  );
}

/** Refused says once why an upload was refused, and offers what helps. */
function Refused({ upload: u, error }: { upload: Upload; error: Error }) {
  const problem = problemOf(error);
  const reasons = problem?.errors ?? [];
  if (problem?.taken) return <NameTaken upload={u} taken={problem.taken} />;
  if (reasons.length && reasons.every((r) => r.code === "folder-name"))
    return (
      <div class="note warn">
        {msg("add.otherFolder")}
        <div>
          <Button small look="primary" onClick={() => retry(u, { lenient: true })}>
            {msg("add.anyFolder")}
          </Button>
        </div>
      </div>
    );
  if (error instanceof Unreachable || (problem && !ofFiles.includes(problem.code)))
    return <Problem error={error} again={() => retry(u)} />;
  return (
    <div class="note bad" role="alert">
      <strong>{reasons.length || problem?.diagnostics?.length ? msg("add.fix") : error.message}</strong>
      <Reasons
        errors={reasons.map(reasonOf)}
        diagnostics={problem?.diagnostics?.filter((d) => d.severity === "error")}
      />
      <div>
        <Choose
          text={msg("add.chooseFixed")}
          folder={u.pack.folder}
          small
          onFiles={async (files) => {
            forget(u.id);
            if (files)
              enqueue(await packagesOf([...files]), { namespace: u.namespace, lenient: u.lenient, version: u.version });
          }}
        />
      </div>
    </div>
  );
}

/** The codes of problems that only other files solve. */
const ofFiles = ["bad_package", "bad_skill", "bad_name", "too_large"];

function NameTaken({ upload, taken: { skill_id: skill, mayAddVersion } }: { upload: Upload; taken: Schema["Taken"] }) {
  const [changelog, setChangelog] = useState("");
  const form = mayAddVersion && skill;
  return (
    <form
      class="note warn stack tight"
      onSubmit={(e) => {
        e.preventDefault();
        if (form) retry(upload, { version: { skill, changelog: changelog.trim() } });
      }}
    >
      {mayAddVersion ? msg("add.exists") : msg("add.existsOfOthers")}
      {form && <Changelog value={changelog} onText={setChangelog} />}
      <div class="row">
        {form ? (
          <Button small look="primary" type="submit">
            {msg("add.asVersion")}
          </Button>
        ) : (
          <Button small look="primary" onClick={() => retry(upload, { namespace: "" })}>
            {msg("add.forMe")}
          </Button>
        )}
        {skill && (
          <a class="small" href={`/library/${skill}`}>
            {msg("add.open")}
          </a>
        )}
      </div>
    </form>
  );
}

/** Changelog is a field for the author's description of the changes. */
const Changelog = ({ value, onText }: { value: string; onText: (text: string) => void }) => (
  <TextField
    label={msg("add.changelog")}
    hint={msg("add.changelogHint")}
    maxLength={200}
    value={value}
    onText={onText}
  />
);
