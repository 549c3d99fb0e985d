import { Code, Markdown, Mermaid } from "../content";
import { Icon, type IconName } from "../ui";
import { asJSON, diagramOf, shownArguments, tell, took } from "./calls";
import { Fold } from "./fold";
import type { Call, CallState } from "./transcript";
import { w } from "./words";

const icons: Record<CallState, IconName> = { waiting: "asks", running: "play", done: "check", failed: "warn", denied: "lock", unknown: "info" };

/** A call of a tool in a line, that opens to what was asked and what came of it. */
export function CallLine({ call }: { call: Call }) {
  const t = w();
  const { does, what } = tell(call);
  const seconds = took(call.begun, call.ended);
  const diagram = diagramOf(call);
  return (
    <>
      <Fold
        class={`is-${call.state}`}
        line={
          <>
            <span class="does">{does}</span>
            {what && <span class="what truncate">{what}</span>}
            <span class="state push nowrap">
              <Icon name={icons[call.state]} size={14} />
              {seconds !== undefined && seconds >= 0.1 ? `${t.states[call.state]}, ${t.seconds(seconds)}` : t.states[call.state]}
            </span>
          </>
        }
      >
        {() => <CallInside call={call} />}
      </Fold>
      {call.state === "running" && call.progress && <p class="chat-progress small muted" role="status">{call.progress}</p>}
      {diagram && <Mermaid source={diagram} />}
    </>
  );
}

function CallInside({ call }: { call: Call }) {
  const t = w();
  const args = shownArguments(call.args);
  return (
    <>
      <p class="chat-label"><code>{call.name}</code></p>
      <p class="chat-label">{args ? t.args : t.noArgs}</p>
      {args && <Code text={args} language="json" height="16rem" wrap label={t.args} />}
      {call.state === "denied" && <p class="small"><Icon name="lock" size={14} /> {t.deniedText}</p>}
      {call.state === "unknown" && <p class="small">{t.unknownText}</p>}
      {call.result && <Result result={call.result} />}
    </>
  );
}

/** What came of a call: text, JSON, pictures. */
function Result({ result }: { result: NonNullable<Call["result"]> }) {
  const t = w();
  const json = asJSON(result.text);
  const pictures = (result.images ?? []).filter((i) => i.mime_type.startsWith("image/"));
  return (
    <>
      <p class="chat-label">{t.result}</p>
      {!result.text && !pictures.length && <p class="small muted">{t.noResult}</p>}
      {result.text && <Code text={json ?? result.text} language={json ? "json" : undefined} height="20rem" wrap label={t.result} />}
      {pictures.map((p, i) => <img key={i} class="chat-picture" src={`data:${p.mime_type};base64,${p.data}`} alt={t.picture(i + 1)} />)}
      {result.instructions && (
        <>
          <p class="chat-label">{t.told}</p>
          <Markdown text={result.instructions} level={4} />
        </>
      )}
    </>
  );
}
