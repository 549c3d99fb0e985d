import { useRef, useState } from "preact/hooks";
import { useLimits } from "../../api/limits";
import { Button, Check, failed, Icon, Problem, Tag } from "../../ui";
import { size } from "../../words";
import { dropped, packagesOf } from "./pack";
import { asVersion, enqueue, forget, type Upload, uploads } from "./uploads";
import { w } from "./words";

/** Uploading packages: dropped or chosen, one after the other, each with what became of it. */
export function UploadTab({ namespace }: { namespace: string }) {
  const t = w();
  const most = useLimits()?.package;
  const [lenient, setLenient] = useState(false);
  const [over, setOver] = useState(false);
  const drop = async (e: DragEvent) => {
    e.preventDefault();
    setOver(false);
    if (e.dataTransfer) enqueue(await dropped(e.dataTransfer.items), namespace, lenient);
  };
  const choose = (files: FileList | null) => files && enqueue(packagesOf(files), namespace, lenient);
  return (
    <div class="stack">
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
        <strong>{t.drop}</strong>
        <div class="row">
          <Choose text={t.choose} accept=".zip,.skill,application/zip" onFiles={choose} />
          <Choose text={t.folder} folder onFiles={choose} />
        </div>
        <span class="small muted">{most && t.atMost(size(most))}{t.dropHint}</span>
      </div>
      <Check label={t.lenient} checked={lenient} onCheck={setLenient} />
      {uploads.value.length > 0 && (
        <section class="stack tight" aria-label={t.queue}>
          <h2>{t.queue}</h2>
          <ul class="stack tight" aria-live="polite">{uploads.value.map((u) => <li key={u.id}><Line upload={u} /></li>)}</ul>
        </section>
      )}
    </div>
  );
}

/** A button that chooses files. */
function Choose({ text, folder, accept, onFiles }: { text: string; folder?: boolean; accept?: string; onFiles: (files: FileList | null) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon={folder ? "folder" : "file"} look={folder ? "" : "primary"} onClick={() => input.current?.click()}>{text}</Button>
      <input
        ref={input} type="file" multiple hidden accept={accept} aria-label={text} {...(folder && { webkitdirectory: true })}
        onChange={(e) => {
          onFiles(e.currentTarget.files);
          e.currentTarget.value = "";
        }}
      />
    </>
  );
}

function Line({ upload: u }: { upload: Upload }) {
  const t = w();
  const s = u.state;
  return (
    <div class="card stack tight">
      <div class="row">
        <strong class="truncate">{u.pack.name}</strong>
        {s.at === "done" ? <Tag look="good"><Icon name="check" size={14} />{s.version ? t.version(s.version) : t.done}</Tag> : s.at === "refused" ? <Tag look="bad">{t.refused}</Tag> : <Tag>{s.at === "sending" ? t.sending(Math.floor(s.share * 100)) : t[s.at]}</Tag>}
        <span class="push row">
          {s.at === "done" && <a class="button small" href={`/library/${s.skill}`}>{t.open}</a>}
          {(s.at === "done" || s.at === "refused") && <Button small look="quiet" icon="close" label={t.skip} onClick={() => forget(u.id)} />}
        </span>
      </div>
      {s.at === "sending" && <progress class="progress" aria-label={u.pack.name} value={s.share} />}
      {s.at === "done" && s.code && <p class="small muted">{t.reviewNext}</p>}
      {s.at === "refused" && (s.exists ? <Taken upload={u} skill={s.exists} /> : <Problem error={s.error} />)}
    </div>
  );
}

function Taken({ upload, skill }: { upload: Upload; skill: string }) {
  const t = w();
  return (
    <div class="note warn">
      {t.exists}
      <div class="row">
        <Button small look="primary" onClick={() => void asVersion(upload, skill)}>{t.asVersion}</Button>
        <a class="small" href={`/library/${skill}`}>{t.open}</a>
      </div>
    </div>
  );
}
