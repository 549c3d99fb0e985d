import { useEffect, useRef, useState } from "preact/hooks";
import { api, got, useAsked, type Schema } from "../api/client";
import { Code } from "../content";
import { Empty, Problem, Shown, Waiting } from "../ui";
import { useAddress } from "./address";
import type { Looked } from "./detail";
import { marksOf, Said, severities, Severity } from "./marks";
import { useFile, useManifest } from "./version";
import { d } from "./words-detail";

type Finding = Schema["Finding"];

/** What a scan found in a version, beside the lines that it is about. */
export function Findings({ look: { skill, version } }: { look: Looked }) {
  const scan = useAsked((signal) => got(api.GET("/api/v1/skills/{skill}/versions/{version}/findings", { signal, params: { path: { skill: skill.id, version: String(version.number) } } })), [skill.id, version.number]);
  const manifest = useManifest(skill.id, version.number);
  const t = d();
  return (
    <Shown asked={scan} waiting={t.waitingScan}>
      {({ findings, files, truncated }) => (
        <div class="stack">
          {(truncated || version.unscanned) && <p class="note warn">{t.scanCut}</p>}
          {!findings.length ? <Empty title={t.noFindings}>{t.noFindingsText(files)}</Empty> : (
            <>
              <Summary findings={findings} />
              {byFile(findings).map(([path, found], i) => <InFile key={path} look={{ skill: skill.id, version: version.number }} file={manifest.data?.files.find((f) => f.path === path)} path={path} found={found} first={i < 3} />)}
            </>
          )}
        </div>
      )}
    </Shown>
  );
}

/** The findings of each file, the files with the worst first. */
function byFile(findings: Finding[]): [string, Finding[]][] {
  const files = new Map<string, Finding[]>();
  for (const f of findings) files.set(f.file, [...(files.get(f.file) ?? []), f]);
  const worst = (all: Finding[]) => Math.min(...all.map((f) => severities.indexOf(f.severity)));
  return [...files].sort(([a, x], [b, y]) => worst(x) - worst(y) || a.localeCompare(b));
}

/** How many there are of each severity, and what that means. */
function Summary({ findings }: { findings: Finding[] }) {
  const t = d();
  return (
    <div class="card stack tight">
      <p>{t.foundIn(findings.length, new Set(findings.map((f) => f.file)).size)}</p>
      <ul class="library-lines">
        {severities.map((s) => [s, findings.filter((f) => f.severity === s).length] as const).filter(([, n]) => n).map(([s, n]) => (
          <li key={s} class="row"><Severity of={s} /><span>{t.times(n)}</span><span class="muted">{t.severityTexts[s]}</span></li>
        ))}
      </ul>
      <p class="small muted">{t.advice}</p>
    </div>
  );
}

interface InFileProps {
  look: { skill: string; version: number };
  file?: Schema["ManifestFile"];
  path: string;
  found: Finding[];
  first: boolean;
}

/** The findings of a file. Its text is asked for when it is opened. */
function InFile({ look, file, path, found, first }: InFileProps) {
  const [open, setOpen] = useState(first);
  const at = useAddress();
  return (
    <details class="library-file" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <h2 class="mono grow">{path}</h2>
        {severities.filter((s) => found.some((f) => f.severity === s)).map((s) => <Severity key={s} of={s} />)}
        <span class="small muted nowrap">{d().places(found.length)}</span>
      </summary>
      <ul class="library-found">
        {found.map((f, i) => (
          <li key={i}>
            {f.line > 0 ? <><a class="small nowrap" href={at.with({ tab: "files", file: path, line: String(f.line) })}>{d().line(f.line)}</a><span><Severity of={f.severity} /> {f.message}</span></> : <Said finding={f} />}
          </li>
        ))}
      </ul>
      {open && file && found.some((f) => f.line > 0) && <Lines look={look} file={file} found={found} />}
    </details>
  );
}

/** The lines of a file, from the first that something is said about. */
function Lines({ look, file, found }: { look: InFileProps["look"]; file: Schema["ManifestFile"]; found: Finding[] }) {
  const content = useFile(look.skill, look.version, file);
  const ref = useRef<HTMLDivElement>(null);
  const first = Math.min(...found.filter((f) => f.line > 0).map((f) => f.line));
  useEffect(() => {
    const line = ref.current?.querySelector(`[data-line="${first}"]`);
    const box = ref.current?.querySelector(".content-scroll");
    if (line && box) box.scrollTop += line.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
  }, [content.data]);
  if (content.error) return <Problem error={content.error} />;
  if (!content.data) return <Waiting for={d().waitingFile} />;
  if (!("text" in content.data)) return null;
  return <div ref={ref}><Code text={content.data.text} path={file.path} numbers marks={marksOf(found)} height="28rem" label={d().linesOf(file.path)} /></div>;
}
