import { Code, Markdown, Mermaid } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { Icon, type IconName } from "../../shared/ui";
import { Fold } from "./disclosure";
import { duration } from "./phrases";
import { asJSON, diagramOf, shownArguments, summarizeCall, elapsed } from "./toolcalltext";
import type { Call, CallState } from "./transcript";

const icons: Record<CallState, IconName> = {
  waiting: "asks",
  running: "play",
  done: "check",
  failed: "warn",
  denied: "lock",
  unknown: "info",
};

/**
 * CallLine shows a tool call in one line and the pictures of its result, and its arguments and
 * the text of the result when opened.
 */
export function CallLine({ call }: { call: Call }) {
  const { does, what } = summarizeCall(call);
  const seconds = elapsed(call.begun, call.ended);
  const diagram = diagramOf(call);
  const pictures = call.result?.images?.filter((i) => i.mime_type.startsWith("image/"));
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
              {seconds !== undefined && seconds >= 0.1
                ? `${msg(`chat.states.${call.state}`)}, ${duration(seconds)}`
                : msg(`chat.states.${call.state}`)}
            </span>
          </>
        }
      >
        {() => <CallInside call={call} />}
      </Fold>
      {call.state === "running" && call.progress && (
        <p class="chat-progress small muted" role="status">
          {call.progress}
        </p>
      )}
      {diagram && <Mermaid source={diagram} />}
      {pictures?.map((p, i) => (
        <img
          key={i}
          class="chat-picture"
          src={`data:${p.mime_type};base64,${p.data}`}
          alt={msg("chat.picture", { n: i + 1 })}
        />
      ))}
    </>
  );
}

function CallInside({ call }: { call: Call }) {
  const args = shownArguments(call.args);
  return (
    <>
      <p class="chat-label">
        <code>{call.name}</code>
      </p>
      <p class="chat-label">{args ? msg("chat.args") : msg("chat.noArgs")}</p>
      {args && <Code text={args} language="json" height="16rem" wrap label={msg("chat.args")} />}
      {call.state === "denied" && (
        <p class="small">
          <Icon name="lock" size={14} /> {msg("chat.deniedText")}
        </p>
      )}
      {call.state === "unknown" && <p class="small">{msg("chat.unknownText")}</p>}
      {call.result && <Result result={call.result} />}
    </>
  );
}

/** Result shows the text or JSON of a result. */
function Result({ result }: { result: NonNullable<Call["result"]> }) {
  const json = asJSON(result.text);
  return (
    <>
      <p class="chat-label">{msg("chat.result")}</p>
      {!result.text && !result.images?.length && <p class="small muted">{msg("chat.noResult")}</p>}
      {result.text && (
        <Code
          text={json ?? result.text}
          language={json ? "json" : undefined}
          height="20rem"
          wrap
          label={msg("chat.result")}
        />
      )}
      {result.instructions && (
        <>
          <p class="chat-label">{msg("chat.told")}</p>
          <Markdown text={result.instructions} level={4} />
        </>
      )}
    </>
  );
}
