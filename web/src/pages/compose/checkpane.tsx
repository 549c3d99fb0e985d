import { Fragment, type ComponentChildren } from "preact";
import type { Schema } from "../../shared/api/client";
import { count } from "../../shared/i18n/format";
import { findMsg, msg } from "../../shared/i18n/messages";
import { translateDiagnostic } from "../../shared/servertext";
import { translateFinding } from "../../shared/servertext/finding";
import { Button, Problem, Tag, Waiting } from "../../shared/ui";
import type { Work } from "./draftstate";
import { NameTaken } from "./nametaken";
import { applyEdit } from "./textpane";
import { isAway, type CheckResult } from "./validation";
import { VerdictTag } from "./verdict";
import type { View } from "./viewstate";

interface Props {
  work: Work;
  view: View;
  result: CheckResult<Schema["Checked"]>;
}

/**
 * CheckPane shows the hub's check of a draft: verdict, problems, listing for models, requested
 * permissions and scan.
 */
export function CheckPane(props: Props) {
  const { result, work } = props;
  if (!result.data)
    return result.error ? (
      isAway(result.error) ? (
        <p class="note warn">{msg("compose.awayText")}</p>
      ) : (
        <Problem error={result.error} />
      )
    ) : (
      <Waiting for={msg("compose.checking")} />
    );
  const c = result.data;
  return (
    <div class="stack loose">
      {result.error && !isAway(result.error) && <Problem error={result.error} />}
      <Part title={msg("compose.verdictOf")}>
        <div>
          <VerdictTag checked={c} />
        </div>
        <p>
          {!c.loads ? msg("compose.refusedText") : c.valid ? msg("compose.strictText") : msg("compose.lenientText")}
        </p>
        {c.loads && !c.saves && <p class="compose-bad">{msg("compose.wontSave")}</p>}
        {c.taken && <NameTaken work={work} taken={c.taken} />}
        {!c.maySave && !work.of && <p>{msg("compose.mayNotHere")}</p>}
      </Part>
      <Part title={msg("compose.toMend")}>
        <Diagnostics {...props} checked={c} />
      </Part>
      <Part title={msg("compose.toModel")}>
        {c.catalogLine ? (
          <>
            <pre class="compose-line">{c.catalogLine}</pre>
            <p class="small muted">{msg("compose.toModelHint", { n: count(c.tokens.catalogLine) })}</p>
          </>
        ) : (
          <p class="small muted">{c.loads ? msg("compose.toModelNone") : msg("compose.toModelLater")}</p>
        )}
        <p class="small">
          {msg("compose.loadedText", { n: count(c.tokens.instructions) })}
          {c.tokens.instructions > 5000 && ` ${msg("compose.loadedLong")}`}
        </p>
      </Part>
      <Part title={msg("compose.asks")}>
        <Asks checked={c} />
      </Part>
      <Part title={msg("compose.scan")}>
        <Findings {...props} checked={c} />
      </Part>
    </div>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="stack tight">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

const looks = { error: "bad", warning: "warn", info: "" } as const;

function Diagnostics({ work, view, result, checked }: Props & { checked: Schema["Checked"] }) {
  if (!checked.diagnostics.length) return <p class="muted">{msg("compose.noProblems")}</p>;
  return (
    <ul class="compose-remarks">
      {checked.diagnostics.map(translateDiagnostic).map((d, i) => {
        const file = work.files.find((f) => f.path === d.file);
        const current = file && result.of?.includes(file);
        return (
          <li key={i}>
            <div class="row">
              <Tag look={looks[d.severity]}>{findMsg("compose.severity", d.severity)}</Tag>
              <Where view={view} file={d.file} line={d.line} />
            </div>
            <p>{d.message}</p>
            {d.fix && <p class="small muted">{d.fix}</p>}
            {file && d.edit && (
              <div>
                <Button small disabled={!current} onClick={() => applyEdit(work, file, d.edit!)}>
                  {msg("compose.fix")}
                </Button>
              </div>
            )}
            {file && d.rename && (
              <div>
                <Button
                  small
                  onClick={() => work.change((was) => was.map((f) => (f === file ? { ...f, path: d.rename! } : f)))}
                >
                  {msg("compose.renameFix", { name: d.rename })}
                </Button>
              </div>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** Where links to a line of a file. */
function Where({ view, file, line }: { view: View; file: string; line: number }) {
  const text = (
    <span class="mono">
      {file}
      {line > 0 && `:${line}`}
    </span>
  );
  if (!file) return null;
  return (
    <button type="button" class="compose-where" onClick={() => view.goTo(file, line || 1)}>
      {text}
    </button>
  );
}

function Asks({ checked: c }: { checked: Schema["Checked"] }) {
  const kinds = [...new Set(c.asks.all.map((a) => a.kind))];
  const scripts = c.files
    .filter((f) => f.script)
    .map((f) => (
      <div key={f.path} class="mono">
        {f.path}
      </div>
    ));
  return (
    <>
      {c.code && <p>{c.runnable ? msg("compose.codeRuns") : msg("compose.codeReview")}</p>}
      {kinds.length === 0 ? (
        <p class="muted">{msg("compose.asksNone")}</p>
      ) : (
        <dl class="facts">
          {kinds.map((kind) => (
            <Fragment key={kind}>
              <dt>{findMsg("compose.kinds", kind) ?? kind}</dt>
              <dd>
                {kind === "scripts"
                  ? scripts
                  : c.asks.all
                      .filter((a) => a.kind === kind)
                      .map((a) => (
                        <div key={a.name} class="mono">
                          {a.name}
                          {a.new && <span class="muted"> {a.new}</span>}
                        </div>
                      ))}
              </dd>
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
      <p class="small muted">
        {c.findings.length ? msg("compose.scanAdvice") : msg("compose.scanNone")}
        {c.unscanned && ` ${msg("compose.unscanned")}`}
      </p>
      {c.findings.length > 0 && (
        <ul class="compose-remarks">
          {c.findings.map(translateFinding).map((f, i) => (
            <li key={i}>
              <div class="row">
                <Tag look={risks[f.severity]}>{findMsg("compose.levels", f.severity)}</Tag>
                <Where view={view} file={f.file} line={f.line} />
              </div>
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
