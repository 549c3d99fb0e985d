import { Fragment, type ComponentChildren } from "preact";
import type { Schema } from "../api/client";
import { toldDiagnostic } from "../told";
import { Button, Problem, Tag, Waiting } from "../ui";
import { count } from "../words";
import { isAway, type Said } from "./check";
import { Taken } from "./taken";
import { mend } from "./textpane";
import { VerdictTag } from "./verdict";
import type { View } from "./view";
import { w } from "./words";
import type { Work } from "./work";

interface Props {
  work: Work;
  view: View;
  said: Said<Schema["Checked"]>;
}

/** All that the hub says of the draft: the verdict, what to mend, how a model is told of it, what it asks for, what a scan found. */
export function CheckPane(props: Props) {
  const { said, work } = props;
  if (!said.data) return said.error ? (isAway(said.error) ? <p class="note warn">{w().awayText}</p> : <Problem error={said.error} />) : <Waiting for={w().checking} />;
  const c = said.data;
  return (
    <div class="stack loose">
      {said.error && !isAway(said.error) && <Problem error={said.error} />}
      <Part title={w().verdictOf}>
        <div><VerdictTag checked={c} /></div>
        <p>{!c.loads ? w().refusedText : c.valid ? w().strictText : w().lenientText}</p>
        {c.loads && !c.saves && <p class="compose-bad">{w().wontSave}</p>}
        {c.taken && <Taken work={work} taken={c.taken} />}
        {!c.maySave && !work.of && <p>{w().mayNotHere}</p>}
      </Part>
      <Part title={w().toMend}><Diagnostics {...props} checked={c} /></Part>
      <Part title={w().toModel}>
        {c.catalogLine ? <><pre class="compose-line">{c.catalogLine}</pre><p class="small muted">{w().toModelHint(count(c.tokens.catalogLine))}</p></> : <p class="small muted">{c.loads ? w().toModelNone : w().toModelLater}</p>}
        <p class="small">{w().loadedText(count(c.tokens.instructions))}{c.tokens.instructions > 5000 && ` ${w().loadedLong}`}</p>
      </Part>
      <Part title={w().asks}><Asks checked={c} /></Part>
      <Part title={w().scan}><Findings {...props} checked={c} /></Part>
    </div>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return <section class="stack tight"><h2>{title}</h2>{children}</section>;
}

const looks = { error: "bad", warning: "warn", info: "" } as const;

function Diagnostics({ work, view, said, checked }: Props & { checked: Schema["Checked"] }) {
  if (!checked.diagnostics.length) return <p class="muted">{w().noProblems}</p>;
  return (
    <ul class="compose-remarks">
      {checked.diagnostics.map(toldDiagnostic).map((d, i) => {
        const file = work.files.find((f) => f.path === d.file);
        const current = file && said.of?.includes(file);
        return (
          <li key={i}>
            <div class="row"><Tag look={looks[d.severity]}>{w().severity[d.severity]}</Tag><Where view={view} file={d.file} line={d.line} /></div>
            <p>{d.message}</p>
            {d.fix && <p class="small muted">{d.fix}</p>}
            {file && d.edit && <div><Button small disabled={!current} onClick={() => mend(work, file, d.edit!)}>{w().fix}</Button></div>}
            {file && d.rename && <div><Button small onClick={() => work.change((was) => was.map((f) => (f === file ? { ...f, path: d.rename! } : f)))}>{w().renameFix(d.rename)}</Button></div>}
          </li>
        );
      })}
    </ul>
  );
}

/** Leads to a line of a file. */
function Where({ view, file, line }: { view: View; file: string; line: number }) {
  const text = <span class="mono">{file}{line > 0 && `:${line}`}</span>;
  if (!file) return null;
  return <button type="button" class="compose-where" onClick={() => view.goTo(file, line || 1)}>{text}</button>;
}

function Asks({ checked: c }: { checked: Schema["Checked"] }) {
  const kinds = [...new Set(c.asks.all.map((a) => a.kind))];
  const scripts = c.files.filter((f) => f.script).map((f) => <div key={f.path} class="mono">{f.path}</div>);
  return (
    <>
      {c.code && <p>{c.runnable ? w().codeRuns : w().codeReview}</p>}
      {kinds.length === 0 ? <p class="muted">{w().asksNone}</p> : (
        <dl class="facts">
          {kinds.map((kind) => (
            <Fragment key={kind}>
              <dt>{w().kinds[kind] ?? kind}</dt>
              <dd>{kind === "scripts" ? scripts : c.asks.all.filter((a) => a.kind === kind).map((a) => <div key={a.name} class="mono">{a.name}{a.new && <span class="muted"> {a.new}</span>}</div>)}</dd>
            </Fragment>
          ))}
        </dl>
      )}
    </>
  );
}

const risks = { info: "", low: "", medium: "warn", high: "bad" } as const;

function Findings({ view, checked: c }: Props & { checked: Schema["Checked"] }) {
  return (
    <>
      <p class="small muted">{c.findings.length ? w().scanAdvice : w().scanNone}{c.unscanned && ` ${w().unscanned}`}</p>
      {c.findings.length > 0 && (
        <ul class="compose-remarks">
          {c.findings.map((f, i) => (
            <li key={i}>
              <div class="row"><Tag look={risks[f.severity]}>{w().levels[f.severity]}</Tag><Where view={view} file={f.file} line={f.line} /></div>
              <p>{f.message}</p>
              {f.excerpt && <pre class="compose-line">{f.excerpt}</pre>}
              {f.advice && <p class="small muted">{f.advice}</p>}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
