import { useState } from "preact/hooks";
import type { Schema } from "../api/client";
import { Code, Editor } from "../content";
import { ActionButton, AreaField, Button, Menu, MenuItem, failed } from "../ui";
import type { Ask } from "./waiting";
import { w } from "./words";

/** What a call is that is asked about. */
interface Call {
  tool?: string;
  server?: string;
  skill?: string;
  arguments?: unknown;
  reason?: string;
  exact?: boolean;
}

/** Asks for leave for a call, whose arguments may be changed. */
export function Approval({ ask, reply }: { ask: Ask; reply: (answer: Schema["Answer"]) => Promise<void> }) {
  const t = w();
  const call = (ask.payload ?? {}) as Call;
  const before = JSON.stringify(call.arguments ?? {}, null, 2);
  const [edited, setEdited] = useState<string>();
  const [feedback, setFeedback] = useState("");
  const [wrong, setWrong] = useState(false);
  const allow = async (scope: "once" | "session" | "always") => {
    const content = edited === undefined || edited === before ? undefined : parsed(edited);
    setWrong(content === null);
    if (content !== null) await reply({ outcome: "accepted", scope, feedback, content });
  };
  return (
    <>
      {call.tool ? <Facts call={call} /> : <p class="asks-message">{ask.message}</p>}
      {edited === undefined ? (
        <Arguments text={before} />
      ) : (
        <Editor label={t.editing} language="json" value={edited} onChange={setEdited} height="12rem" />
      )}
      {wrong && <p class="asks-wrong" role="alert">{t.notJSON}</p>}
      <div><Button small look="quiet" icon="compose" onClick={() => setEdited(edited === undefined ? before : undefined)}>{edited === undefined ? t.edit : t.unedit}</Button></div>
      <AreaField label={t.feedback} hint={t.feedbackHint} rows={2} value={feedback} onText={setFeedback} />
      {call.exact && <p class="small muted">{t.exact}</p>}
      <div class="row">
        <ActionButton look="primary" icon="check" act={() => allow("once")}>{t.allow}</ActionButton>
        <Menu label={t.more} icon="down" place="start">
          <MenuItem onClick={() => void allow("session").catch(failed)}>{t.session}</MenuItem>
          <MenuItem onClick={() => void allow("always").catch(failed)}>{t.always}</MenuItem>
        </Menu>
        <ActionButton icon="close" act={() => reply({ outcome: "declined", feedback })}>{t.decline}</ActionButton>
      </div>
    </>
  );
}

function Facts({ call }: { call: Call }) {
  const t = w();
  return (
    <dl class="facts">
      <dt>{t.tool}</dt><dd><code>{call.tool}</code></dd>
      {call.skill && <><dt>{t.skill}</dt><dd>{call.skill}</dd></>}
      {call.server && <><dt>{t.server}</dt><dd>{call.server}</dd></>}
      {call.reason && <><dt>{t.why}</dt><dd>{call.reason}</dd></>}
    </dl>
  );
}

function Arguments({ text }: { text: string }) {
  if (text === "{}") return <p class="small muted">{w().noArgs}</p>;
  return <Code text={text} language="json" height="14rem" />;
}

/** The object that a text is, or null. */
function parsed(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
