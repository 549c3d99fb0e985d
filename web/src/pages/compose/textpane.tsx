import { useEffect, useMemo, useState } from "preact/hooks";
import type { Schema } from "../../shared/api/client";
import { Editor } from "../../shared/content";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { translates, translateDiagnostic } from "../../shared/servertext";
import { done, Empty } from "../../shared/ui";
import { apply } from "./applyfix";
import { completions } from "./completions";
import type { Work } from "./draftstate";
import { bytesOf, languageOf, pictureType, sizeOf, type DraftFile } from "./files";
import type { CheckResult } from "./validation";
import type { View } from "./viewstate";

/** TextPane shows the open file: its text in the editor, or its picture. */
export function TextPane({ work, view, result }: { work: Work; view: View; result: CheckResult<Schema["Checked"]> }) {
  const file = work.files.find((f) => f.path === view.file) ?? work.files[0];
  if (!file) return <Empty title={msg("compose.noSkillFile")} />;
  return (
    <section class="compose-file" aria-label={msg("compose.textOf", { path: file.path })}>
      <header class="row">
        <h2 class="mono grow">{file.path}</h2>
        <span class="small muted">{size(sizeOf(file))}</span>
      </header>
      {file.text !== undefined ? (
        <Text key={file.path} work={work} view={view} file={file as TextFile} result={result} />
      ) : (
        <Bytes key={file.path} file={file} />
      )}
      {file.text !== undefined && <p class="small muted">{msg("compose.keys")}</p>}
    </section>
  );
}

type TextFile = DraftFile & { text: string };

function Text({
  work,
  view,
  file,
  result,
}: {
  work: Work;
  view: View;
  file: TextFile;
  result: CheckResult<Schema["Checked"]>;
}) {
  // The marks belong to the checked text. After a change they would be at wrong lines.
  const current = result.of?.find((f) => f.path === file.path)?.text === file.text;
  const marks = useMemo(() => {
    if (!current || !result.data) return [];
    return result.data.diagnostics
      .filter((d) => d.file === file.path)
      .map(translateDiagnostic)
      .map((d) => ({ ...d, apply: d.edit && (() => applyEdit(work, file, d.edit!)) }));
  }, [current, result.data, file, translates.value]);
  return (
    <Editor
      label={msg("compose.textOf", { path: file.path })}
      value={file.text.replaceAll("\r\n", "\n")}
      onChange={(text) => work.write(file.path, asWritten(text, file.text))}
      language={languageOf(file.path)}
      diagnostics={marks}
      completions={file.path.endsWith(".md") ? completions : undefined}
      height={marks.length ? "max(20rem, calc(100dvh - 25rem))" : "max(24rem, calc(100dvh - 11rem))"}
      go={view.line?.file === file.path ? view.line : undefined}
    />
  );
}

/** asWritten restores the line endings of a file, because the editor uses LF only. */
function asWritten(text: string, before: string): string {
  return before.includes("\r\n") && !/[^\r]\n/.test(before) ? text.replaceAll("\n", "\r\n") : text;
}

/** applyEdit applies a fix of the hub. */
export function applyEdit(work: Work, file: { path: string; text?: string }, edit: Schema["Edit"]) {
  work.write(file.path, apply(file.text ?? "", edit));
  done(msg("compose.mended"));
}

function Bytes({ file }: { file: DraftFile }) {
  const type = pictureType(file.path);
  const [broken, setBroken] = useState(false);
  const [url, setURL] = useState<string>();
  useEffect(() => {
    if (!type) return;
    const made = URL.createObjectURL(new Blob([bytesOf(file)], { type }));
    setURL(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  if (!type || broken) return <p class="note">{broken ? msg("compose.broken") : msg("compose.binary")}</p>;
  return (
    <figure class="compose-picture">
      {url && <img src={url} alt={msg("compose.picture", { path: file.path })} onError={() => setBroken(true)} />}
    </figure>
  );
}
