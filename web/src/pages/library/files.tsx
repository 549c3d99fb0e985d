import { fileOf, useAddress } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { Code, Markdown } from "../../shared/content";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Icon, Problem, Shown, Tag, Waiting } from "../../shared/ui";
import { folders, type Folder } from "./folders";
import type { Looked } from "./opened";
import { packageSize } from "./phrases";
import { instructions, mainFile, useFile, useManifest } from "./versionfiles";

type ManifestFile = Schema["ManifestFile"];

/** Files shows the files of a version and their content. */
export function Files({ look: { skill, version } }: { look: Looked }) {
  const manifest = useManifest(skill.id, version.number);
  const at = useAddress();
  return (
    <Shown asked={manifest} waiting={msg("skill.waitingFiles")}>
      {(m) => {
        const chosen = at.get("file");
        const open = m.files.find((f) => f.path === chosen) ?? (chosen ? undefined : mainFile(m.files));
        return (
          <div class="library-files">
            <nav class="card" aria-label={msg("skill.files")}>
              <p class="small muted">{packageSize(size(m.size), m.files.length, version.scripts)}</p>
              <Tree folder={folders(m.files)} open={open?.path} />
            </nav>
            {open ? (
              <File key={open.path} skill={skill.id} version={version.number} file={open} />
            ) : (
              <p class="note">{msg("skill.noFile", { p: chosen })}</p>
            )}
          </div>
        );
      }}
    </Shown>
  );
}

/** Tree shows a folder. It opens the folders that lead to the shown file. */
function Tree({ folder, open = "" }: { folder: Folder; open?: string }) {
  const at = useAddress();
  return (
    <ul class="library-tree">
      {folder.folders.map((f) => (
        <li key={f.path}>
          <details open={folder.folders.length + folder.files.length <= 20 || open.startsWith(f.path + "/")}>
            <summary>
              <Icon name="folder" size={16} />
              <span class="truncate">{f.name}</span>
              <span class="small muted">{f.many}</span>
            </summary>
            <Tree folder={f} open={open} />
          </details>
        </li>
      ))}
      {folder.files.map((f) => (
        <li key={f.path}>
          <a href={at.with({ file: f.path })} aria-current={f.path === open ? "page" : undefined}>
            <Icon name={f.script ? "play" : "file"} size={16} />
            <span class="truncate">{f.path.slice(f.path.lastIndexOf("/") + 1)}</span>
            {f.script && <span class="visually-hidden">{msg("skill.script")}</span>}
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

  return (
    <section class="stack tight" aria-label={file.path}>
      <div class="row">
        <h2 class="mono grow">{file.path}</h2>
        {file.script && (
          <Tag look="warn" title={msg("skill.scriptHint")}>
            {msg("skill.script")}
          </Tag>
        )}
        <span class="small muted">{size(file.size)}</span>
        {markdown && (
          <Button small aria-pressed={!raw} onClick={() => at.go({ raw: raw ? "" : "1" })}>
            {raw ? msg("skill.rendered") : msg("skill.asText")}
          </Button>
        )}
        <a
          class="button small"
          href={fileOf(skill, version, file.path)}
          download={file.path.slice(file.path.lastIndexOf("/") + 1)}
        >
          <Icon name="download" size={16} />
          {msg("skill.raw")}
        </a>
      </div>
      <Content
        skill={skill}
        version={version}
        file={file}
        rendered={markdown && !raw}
        line={Number(at.get("line")) || undefined}
      />
    </section>
  );
}

function Content({
  skill,
  version,
  file,
  rendered,
  line,
}: {
  skill: string;
  version: number;
  file: ManifestFile;
  rendered: boolean;
  line?: number;
}) {
  const content = useFile(skill, version, file);
  if (content.error) return <Problem error={content.error} again={() => void content.again()} />;
  const data = content.data;
  if (!data) return <Waiting for={msg("skill.waitingFile")} />;
  if ("picture" in data)
    return (
      <div class="card library-picture">
        <img src={data.picture} alt={file.path} />
      </div>
    );
  if ("other" in data) return <p class="note">{msg("skill.noText")}</p>;
  if (!data.text) return <p class="note">{msg("skill.emptyFile")}</p>;
  if (!rendered || line)
    return (
      <Code text={data.text} path={file.path} numbers line={line} label={msg("skill.linesOf", { p: file.path })} />
    );
  const folder = file.path.includes("/") ? file.path.slice(0, file.path.lastIndexOf("/")) : "";
  const text = folder ? data.text : instructions(data.text);
  return (
    <article class="card library-article">
      <Markdown text={text} base={folder} file={(path) => fileOf(skill, version, path)} level={3} />
    </article>
  );
}
