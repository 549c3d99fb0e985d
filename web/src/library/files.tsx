import type { Schema } from "../api/client";
import { Code, Markdown } from "../content";
import { Button, Icon, Problem, Shown, Tag, Waiting } from "../ui";
import { size } from "../words";
import { fileOf, useAddress } from "./address";
import type { Looked } from "./detail";
import { folders, type Folder } from "./folders";
import { instructions, mainFile, useFile, useManifest } from "./version";
import { d } from "./words-detail";

type ManifestFile = Schema["ManifestFile"];

/** The files of a version: which there are, and what is in them. */
export function Files({ look: { skill, version } }: { look: Looked }) {
  const manifest = useManifest(skill.id, version.number);
  const at = useAddress();
  return (
    <Shown asked={manifest} waiting={d().waitingFiles}>
      {(m) => {
        const chosen = at.get("file");
        const open = m.files.find((f) => f.path === chosen) ?? (chosen ? undefined : mainFile(m.files));
        return (
          <div class="library-files">
            <nav class="card" aria-label={d().files}>
              <p class="small muted">{d().sizeOf(size(m.size), m.files.length, version.scripts)}</p>
              <Tree folder={folders(m.files)} open={open?.path} />
            </nav>
            {open ? <File key={open.path} skill={skill.id} version={version.number} file={open} /> : <p class="note">{d().noFile(chosen)}</p>}
          </div>
        );
      }}
    </Shown>
  );
}

/** A folder with all below it; those are open that lead to the file that is shown. */
function Tree({ folder, open = "" }: { folder: Folder; open?: string }) {
  const at = useAddress();
  return (
    <ul class="library-tree">
      {folder.folders.map((f) => (
        <li key={f.path}>
          <details open={folder.folders.length + folder.files.length <= 20 || open.startsWith(f.path + "/")}>
            <summary><Icon name="folder" size={16} /><span class="truncate">{f.name}</span><span class="small muted">{f.many}</span></summary>
            <Tree folder={f} open={open} />
          </details>
        </li>
      ))}
      {folder.files.map((f) => (
        <li key={f.path}>
          <a href={at.with({ file: f.path })} aria-current={f.path === open ? "page" : undefined}>
            <Icon name={f.script ? "play" : "file"} size={16} />
            <span class="truncate">{f.path.slice(f.path.lastIndexOf("/") + 1)}</span>
            {f.script && <span class="visually-hidden">{d().script}</span>}
            <span class="small muted nowrap">{size(f.size)}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function File({ skill, version, file }: { skill: string; version: number; file: ManifestFile }) {
  const at = useAddress();
  const raw = at.get("raw") === "1";
  const markdown = /\.(md|markdown)$/i.test(file.path);
  const t = d();
  return (
    <section class="stack tight" aria-label={file.path}>
      <div class="row">
        <h2 class="mono grow">{file.path}</h2>
        {file.script && <Tag look="warn" title={t.scriptHint}>{t.script}</Tag>}
        <span class="small muted">{size(file.size)}</span>
        {markdown && <Button small aria-pressed={!raw} onClick={() => at.go({ raw: raw ? "" : "1" })}>{raw ? t.rendered : t.asText}</Button>}
        <a class="button small" href={fileOf(skill, version, file.path)} download={file.path.slice(file.path.lastIndexOf("/") + 1)}><Icon name="download" size={16} />{t.raw}</a>
      </div>
      <Content skill={skill} version={version} file={file} rendered={markdown && !raw} line={Number(at.get("line")) || undefined} />
    </section>
  );
}

function Content({ skill, version, file, rendered, line }: { skill: string; version: number; file: ManifestFile; rendered: boolean; line?: number }) {
  const content = useFile(skill, version, file);
  if (content.error) return <Problem error={content.error} again={() => void content.again()} />;
  const data = content.data;
  if (!data) return <Waiting for={d().waitingFile} />;
  if ("picture" in data) return <div class="card library-picture"><img src={data.picture} alt={file.path} /></div>;
  if ("other" in data) return <p class="note">{d().noText}</p>;
  if (!data.text) return <p class="note">{d().emptyFile}</p>;
  if (!rendered || line) return <Code text={data.text} path={file.path} numbers line={line} label={d().linesOf(file.path)} />;
  const folder = file.path.includes("/") ? file.path.slice(0, file.path.lastIndexOf("/")) : "";
  const text = folder ? data.text : instructions(data.text);
  return <article class="card library-article"><Markdown text={text} base={folder} file={(path) => fileOf(skill, version, path)} level={3} /></article>;
}
