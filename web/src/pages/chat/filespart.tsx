import { useEffect, useState } from "preact/hooks";
import { api, got, type Schema, useLoad } from "../../shared/api/client";
import { Code, Markdown } from "../../shared/content";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Dialog, done, failed, Icon, Shown, useConfirm } from "../../shared/ui";
import { Attach } from "./attach";
import { Known } from "./knowndetails";

type File = Schema["ChatFile"];

const address = (id: string, path: string) =>
  `/api/v1/sessions/${id}/files/${path.split("/").map(encodeURIComponent).join("/")}`;

/** FilesPart lists the files of a conversation. */
export function FilesPart({ id, at }: { id: string; at: number }) {
  const [open, setOpen] = useState<File>();
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/sessions/{session}/files", { params: { path: { session: id } }, signal })),
    [id, at],
  );
  const add = async (files: globalThis.File[]) => {
    const { addFiles } = await import("./attachment");
    try {
      for (const [name, as] of await addFiles(id, files)) done(msg("chat.addedAs", { name, as }));
    } finally {
      await load.again();
    }
  };
  return (
    <section>
      <div class="row keep">
        <h2 class="grow">{msg("chat.files")}</h2>
        <Attach asTheyAre onFiles={(files) => void files.then(add).catch(failed)} />
      </div>
      <Known load={load} waiting={msg("chat.gettingFiles")}>
        {({ items }) =>
          items.length ? (
            <ul class="chat-files">
              {items.map((f) => (
                <FileRow key={f.path} id={id} file={f} onOpen={() => setOpen(f)} onGone={load.again} />
              ))}
            </ul>
          ) : (
            <p class="small muted">{msg("chat.noFiles")}</p>
          )
        }
      </Known>
      {open && <FileView id={id} file={open} onClose={() => setOpen(undefined)} />}
    </section>
  );
}

function FileRow({
  id,
  file,
  onOpen,
  onGone,
}: {
  id: string;
  file: File;
  onOpen: () => void;
  onGone: () => Promise<void>;
}) {
  const confirm = useConfirm();
  const drop = async () => {
    await got(
      api.DELETE("/api/v1/sessions/{session}/files/{path}", { params: { path: { session: id, path: file.path } } }),
    );
    await onGone();
  };
  return (
    <li class="row keep">
      <button
        type="button"
        class="name grow truncate"
        title={file.path}
        aria-label={msg("chat.view", { name: file.path })}
        onClick={onOpen}
      >
        {file.path}
      </button>
      <span class="small muted nowrap">{size(file.size)}</span>
      <a
        class="button quiet small icon"
        href={address(id, file.path)}
        download
        aria-label={msg("chat.download", { name: file.path })}
        title={msg("chat.download", { name: file.path })}
      >
        <Icon name="download" size={16} />
      </a>
      <Button
        small
        look="quiet"
        icon="trash"
        label={msg("chat.removeFile", { name: file.path })}
        onClick={() =>
          confirm.ask({
            title: `${msg("chat.removeFile", { name: file.path })}?`,
            children: msg("chat.removeFileText"),
            yes: msg("chat.yesRemoveFile"),
            danger: true,
            act: drop,
          })
        }
      />
      {confirm.open}
    </li>
  );
}

const pictures: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  svg: "image/svg+xml",
};
const endOf = (path: string) => path.split(".").at(-1)!.toLowerCase();

/** FileView shows a file: highlighted text, Markdown or a picture. */
function FileView({ id, file, onClose }: { id: string; file: File; onClose: () => void }) {
  const load = useLoad((signal) => read(address(id, file.path), file, signal), [id, file.path]);
  const seen = load.data;
  useEffect(() => () => void (seen && "picture" in seen && URL.revokeObjectURL(seen.picture)), [seen]);
  return (
    <Dialog
      wide
      title={file.path}
      onClose={onClose}
      actions={
        <a class="button" href={address(id, file.path)} download>
          {msg("chat.downloadIt")}
        </a>
      }
    >
      <Shown asked={load} waiting={msg("chat.gettingFiles")}>
        {(seen) =>
          "picture" in seen ? (
            <img class="chat-picture" src={seen.picture} alt={file.path} />
          ) : "text" in seen ? (
            endOf(file.path) === "md" ? (
              <Markdown text={seen.text} />
            ) : (
              <Code text={seen.text} path={file.path} numbers height="60vh" preview />
            )
          ) : (
            <p>{msg("chat.noView")}</p>
          )
        }
      </Shown>
    </Dialog>
  );
}

type Seen = { text: string } | { picture: string } | { none: true };

/** read loads a file. A picture is an object URL, which the caller revokes. */
async function read(href: string, file: File, signal: AbortSignal): Promise<Seen> {
  const response = await fetch(href, { signal });
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const bytes = await response.arrayBuffer();
  const kind = pictures[endOf(file.path)];
  if (kind) return { picture: URL.createObjectURL(new Blob([bytes], { type: kind })) };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? { none: true } : { text };
  } catch {
    return { none: true };
  }
}
