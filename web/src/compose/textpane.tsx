import { useEffect, useMemo, useState } from "preact/hooks";
import type { Schema } from "../api/client";
import { Editor } from "../content";
import { done, Empty } from "../ui";
import { retold, toldDiagnostic } from "../told";
import { size } from "../words";
import type { Said } from "./check";
import { completions } from "./completions";
import { apply } from "./edit";
import { bytesOf, languageOf, pictureType, sizeOf, type DraftFile } from "./files";
import type { View } from "./view";
import { w } from "./words";
import type { Work } from "./work";

/** The file that is open: its text in the editor, or its picture. */
export function TextPane({ work, view, said }: { work: Work; view: View; said: Said<Schema["Checked"]> }) {
  const file = work.files.find((f) => f.path === view.file) ?? work.files[0];
  if (!file) return <Empty title={w().noSkillFile} />;
  return (
    <section class="compose-file" aria-label={w().textOf(file.path)}>
      <header class="row"><h2 class="mono grow">{file.path}</h2><span class="small muted">{size(sizeOf(file))}</span></header>
      {file.text !== undefined ? <Text key={file.path} work={work} view={view} file={file as TextFile} said={said} /> : <Bytes key={file.path} file={file} />}
      {file.text !== undefined && <p class="small muted">{w().keys}</p>}
    </section>
  );
}

type TextFile = DraftFile & { text: string };

function Text({ work, view, file, said }: { work: Work; view: View; file: TextFile; said: Said<Schema["Checked"]> }) {
  // Marks are of the text that was checked: after a change they would stand at wrong lines.
  const current = said.of?.find((f) => f.path === file.path)?.text === file.text;
  const marks = useMemo(() => {
    if (!current || !said.data) return [];
    return said.data.diagnostics.filter((d) => d.file === file.path).map(toldDiagnostic).map((d) => ({ ...d, apply: d.edit && (() => mend(work, file, d.edit!)) }));
  }, [current, said.data, file, retold.value]);
  return (
    <Editor
      label={w().textOf(file.path)}
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

/** The editor knows line feeds alone: a file whose lines end otherwise keeps its own. */
function asWritten(text: string, before: string): string {
  return before.includes("\r\n") && !/[^\r]\n/.test(before) ? text.replaceAll("\n", "\r\n") : text;
}

/** Does what the hub offered to mend something. */
export function mend(work: Work, file: { path: string; text?: string }, edit: Schema["Edit"]) {
  work.write(file.path, apply(file.text ?? "", edit));
  done(w().mended);
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
  if (!type || broken) return <p class="note">{broken ? w().broken : w().binary}</p>;
  return <figure class="compose-picture">{url && <img src={url} alt={w().picture(file.path)} onError={() => setBroken(true)} />}</figure>;
}
