import { useEffect, useRef, useState } from "preact/hooks";
import { useAddress } from "../../features/skills/skilladdress";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { Code } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { Empty, Problem, Shown, Waiting } from "../../shared/ui";
import { marksOf, FindingText, severities, Severity } from "./findingmarks";
import type { Looked } from "./opened";
import { findingsIn, timesText } from "./phrases";
import { useFile, useManifest } from "./versionfiles";

type Finding = Schema["Finding"];

/** Findings shows the findings of a version in its files. */
export function Findings({ look: { skill, version } }: { look: Looked }) {
  const scan = useLoad(
    (signal) =>
      got(
        api.GET("/api/v1/skills/{skill}/versions/{version}/findings", {
          signal,
          params: { path: { skill: skill.id, version: String(version.number) } },
        }),
      ),
    [skill.id, version.number],
  );
  const manifest = useManifest(skill.id, version.number);

  return (
    <Shown asked={scan} waiting={msg("skill.waitingScan")}>
      {({ findings, files, truncated }) => (
        <div class="stack">
          {(truncated || version.unscanned) && <p class="note warn">{msg("skill.scanCut")}</p>}
          {!findings.length ? (
            <Empty title={msg("skill.noFindings")}>{msg("skill.noFindingsText", { count: files })}</Empty>
          ) : (
            <>
              <Summary findings={findings} />
              {byFile(findings).map(([path, found], i) => (
                <InFile
                  key={path}
                  look={{ skill: skill.id, version: version.number }}
                  file={manifest.data?.files.find((f) => f.path === path)}
                  path={path}
                  found={found}
                  first={i < 3}
                />
              ))}
            </>
          )}
        </div>
      )}
    </Shown>
  );
}

/** byFile groups findings by file, the worst file first. */
function byFile(findings: Finding[]): [string, Finding[]][] {
  const files = new Map<string, Finding[]>();
  for (const f of findings) files.set(f.file, [...(files.get(f.file) ?? []), f]);
  const worst = (all: Finding[]) => Math.min(...all.map((f) => severities.indexOf(f.severity)));
  return [...files].sort(([a, x], [b, y]) => worst(x) - worst(y) || a.localeCompare(b));
}

/** Summary counts the findings of each severity and explains them. */
function Summary({ findings }: { findings: Finding[] }) {
  return (
    <div class="card stack tight">
      <p>{findingsIn(findings.length, new Set(findings.map((f) => f.file)).size)}</p>
      <ul class="library-lines">
        {severities
          .map((s) => [s, findings.filter((f) => f.severity === s).length] as const)
          .filter(([, n]) => n)
          .map(([s, n]) => (
            <li key={s} class="row">
              <Severity of={s} />
              <span>{timesText(n)}</span>
              <span class="muted">{msg(`skill.severityTexts.${s}`)}</span>
            </li>
          ))}
      </ul>
      <p class="small muted">{msg("skill.advice")}</p>
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

/** InFile shows the findings of a file. It loads the text when opened. */
function InFile({ look, file, path, found, first }: InFileProps) {
  const [open, setOpen] = useState(first);
  const at = useAddress();
  return (
    <details class="library-file" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <h2 class="mono grow">{path}</h2>
        {severities
          .filter((s) => found.some((f) => f.severity === s))
          .map((s) => (
            <Severity key={s} of={s} />
          ))}
        <span class="small muted nowrap">{msg("skill.places", { count: found.length })}</span>
      </summary>
      <ul class="library-found">
        {found.map((f, i) => (
          <li key={i}>
            {f.line > 0 ? (
              <>
                <a class="small nowrap" href={at.with({ tab: "files", file: path, line: String(f.line) })}>
                  {msg("skill.line", { n: f.line })}
                </a>
                <span>
                  <Severity of={f.severity} /> {f.message}
                </span>
              </>
            ) : (
              <FindingText finding={f} />
            )}
          </li>
        ))}
      </ul>
      {open && file && found.some((f) => f.line > 0) && <Lines look={look} file={file} found={found} />}
    </details>
  );
}

/** Lines shows the lines of a file from the first finding on. */
function Lines({ look, file, found }: { look: InFileProps["look"]; file: Schema["ManifestFile"]; found: Finding[] }) {
  const content = useFile(look.skill, look.version, file);
  const ref = useRef<HTMLDivElement>(null);
  const first = Math.min(...found.filter((f) => f.line > 0).map((f) => f.line));
  useEffect(() => {
    const line = ref.current?.querySelector(`[data-line="${first}"]`);
    const box = ref.current?.querySelector(".content-scroll");
    if (line && box)
      box.scrollTop += line.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
  }, [content.data]);
  if (content.error) return <Problem error={content.error} />;
  if (!content.data) return <Waiting for={msg("skill.waitingFile")} />;
  if (!("text" in content.data)) return null;
  return (
    <div ref={ref}>
      <Code
        text={content.data.text}
        path={file.path}
        numbers
        marks={marksOf(found)}
        height="28rem"
        label={msg("skill.linesOf", { p: file.path })}
      />
    </div>
  );
}
