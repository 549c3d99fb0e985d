import { useLocation } from "preact-iso";
import { useMemo, useState } from "preact/hooks";
import { api, got, useAsked, type Schema } from "../api/client";
import { hasRole, isAdmin, me } from "../api/me";
import { Diff } from "../content";
import { toldDiagnostic } from "../told";
import { Button, Dialog, done, Problem, SelectField, Tag, TextField } from "../ui";
import type { Said } from "./check";
import { setField } from "./change";
import { skillFile, type DraftFile } from "./files";
import { forget, keepRequests, requestsOf } from "./kept";
import { Taken } from "./taken";
import { changes, type Changed } from "./changes";
import { save } from "./upload";
import { suggestions } from "./version";
import { w } from "./words";
import type { Work } from "./work";

interface Props {
  work: Work;
  said: Said<Schema["Checked"]>;
  onClose: () => void;
}

/** Saves the draft: as a new skill in a namespace, or as a version, whose changes it shows before. */
export function SaveDialog({ work, said, onClose }: Props) {
  const { route } = useLocation();
  const now = said.data?.version ?? "";
  const [version, setVersion] = useState(now);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const c = said.data;
  const press = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const saved = await save(work, await called(work.files, now, version), c?.name || work.name || "skill");
      work.settle();
      forget(work.key);
      keepRequests(saved.skill, requestsOf(work.key));
      done(work.of ? w().savedVersion(saved.name, saved.number) : w().savedNew(saved.name));
      route(`/library/${encodeURIComponent(saved.skill)}`);
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  const refused = c && !said.busy && (!c.saves || !c.maySave);
  return (
    <Dialog
      title={work.of ? w().saveVersionTitle(work.of.name) : w().saveTitle}
      wide={!!work.of}
      onClose={onClose}
      actions={<Button look="primary" onClick={() => void press()} aria-busy={busy} disabled={busy} autofocus>{work.of ? w().saveVersion : w().saveNew}</Button>}
    >
      {!!error && <Problem error={error} />}
      {!error && refused && <Refused checked={c} work={work} />}
      {c?.taken && !work.of && <Taken work={work} taken={c.taken} />}
      {work.of ? <p>{w().becomes(work.of.number + 1)}</p> : <Where work={work} />}
      <Version work={work} now={now} version={version} onVersion={setVersion} />
      {c?.code && !c.runnable && <p class="small muted">{w().reviewAfter}</p>}
      {work.of && <Changes work={work} />}
    </Dialog>
  );
}

/** The files with the version written into SKILL.md, where another one was chosen. */
async function called(files: DraftFile[], now: string, version: string): Promise<DraftFile[]> {
  if (version.trim() === now) return files;
  const yaml = await import("yaml");
  return files.map((f) => (f.path === skillFile ? { ...f, text: setField(yaml, f.text ?? "", "version", version.trim()) } : f));
}

/** Why it will not be saved, as far as that is known before. */
function Refused({ checked: c, work }: { checked: Schema["Checked"]; work: Work }) {
  const errors = c.diagnostics.filter((d) => d.severity === "error");
  return (
    <div class="note bad" role="status">
      <strong>{w().cannotSave}</strong>
      {!c.maySave && <span>{work.of ? w().mayNot : w().mayNotHere}</span>}
      {errors.length > 0 && <ul>{errors.map(toldDiagnostic).map((d, i) => <li key={i}><code>{d.file}{d.line > 0 && `:${d.line}:${d.column}`}</code> {d.message}{d.fix && <span class="muted"> — {d.fix}</span>}</li>)}</ul>}
    </div>
  );
}

/** Chooses the namespace of a new skill: one's own, or one where one may write. */
function Where({ work }: { work: Work }) {
  const groups = useAsked(async (signal) => (await got(api.GET("/api/v1/groups", { params: { query: { limit: 500 } }, signal }))).items, []);
  const mine = `user:${me.value?.user.id ?? ""}`;
  const options: [string, string][] = [[mine, w().own]];
  for (const g of groups.data ?? []) if (hasRole(g.id, "developer")) options.push([`group:${g.id}`, w().inGroup(g.display || g.name)]);
  if (isAdmin.value) options.push(["public", w().everybody]);
  return <SelectField label={w().where} value={work.namespace ?? mine} onText={work.place} options={options} />;
}

function Version({ work, now, version, onVersion }: { work: Work; now: string; version: string; onVersion: (v: string) => void }) {
  const changed = useMemo(() => changes(work.saved, work.files), [work.files]);
  const before = work.of?.version ?? "";
  const same = !!work.of && version !== "" && version === before;
  const next = work.of ? suggestions(before, changed).filter((v) => v !== version) : [];
  return (
    <div class="stack tight">
      <TextField label={w().versionField} hint={same ? w().sameVersion(before) : w().noVersion} value={version} onText={onVersion} autocomplete="off" />
      {next.length > 0 && (version === before || version === now || next.length < 3) && (
        <div class="row small"><span class="muted">{w().suggest}</span>{next.map((v) => <Button key={v} small onClick={() => onVersion(v)}>{v}</Button>)}</div>
      )}
    </div>
  );
}

const looks: Record<Changed["how"], "good" | "bad" | ""> = { added: "good", removed: "bad", changed: "" };

function Changes({ work }: { work: Work }) {
  const all = useMemo(() => changes(work.saved, work.files), [work.files]);
  return (
    <section class="stack">
      <div><h3>{w().whatChanges}</h3><p class="small muted">{all.length ? w().fromNow(work.of!.number) : w().nothingChanges}</p></div>
      {all.map((c, i) => (
        <details key={c.path} open={i < 3} class="compose-change">
          <summary><span class="mono">{c.path}</span> <Tag look={looks[c.how]}>{w().howNames[c.how]}</Tag></summary>
          {c.diff === undefined ? <p class="small muted">{w().notText}</p> : <Diff diff={c.diff} path={c.path} />}
        </details>
      ))}
    </section>
  );
}
