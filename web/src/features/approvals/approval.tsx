import { useState } from "preact/hooks";
import type { Schema } from "../../shared/api/client";
import { Code, Editor } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, AreaField, Button, Menu, MenuItem, failed } from "../../shared/ui";
import { ariaKeys, keyText, singleKeys } from "../shortcuts/keys";
import type { ShortcutName } from "../shortcuts/table";
import type { ApprovalRequest } from "./requests";

/** The arguments and the risk of a call that needs approval. */
interface Call {
  tool?: string;
  server?: string;
  skill?: string;
  arguments?: unknown;
  reason?: string;
  exact?: boolean;
  /** Whether the tool declares that it only reads. */
  read_only?: boolean;
}

/** Approval asks the user to approve a call. The user may edit the arguments. */
export function Approval({ ask, reply }: { ask: ApprovalRequest; reply: (answer: Schema["Answer"]) => Promise<void> }) {
  const call = (ask.payload ?? {}) as Call;
  const before = JSON.stringify(call.arguments ?? {}, null, 2);
  const [edited, setEdited] = useState<string>();
  const [feedback, setFeedback] = useState("");
  const [wrong, setWrong] = useState(false);
  const allow = async (scope: "once" | "session" | "always") => {
    const content = edited === undefined || edited === before ? undefined : parsed(edited);
    setWrong(content === null);
    // The form shows the declaration, so that read_tool may rely on it.
    const read_only = (scope === "always" && call.read_only) || undefined;
    if (content !== null) await reply({ outcome: "accepted", scope, feedback, content, read_only });
  };
  return (
    <>
      {call.tool ? <Facts call={call} /> : <p class="asks-message">{ask.message}</p>}
      {edited === undefined ? (
        <Arguments text={before} />
      ) : (
        <Editor label={msg("approvals.editing")} language="json" value={edited} onChange={setEdited} height="12rem" />
      )}
      {wrong && (
        <p class="asks-wrong" role="alert">
          {msg("approvals.notJSON")}
        </p>
      )}
      <div>
        <Button small look="quiet" icon="compose" onClick={() => setEdited(edited === undefined ? before : undefined)}>
          {edited === undefined ? msg("approvals.edit") : msg("approvals.unedit")}
        </Button>
      </div>
      <AreaField
        label={msg("approvals.feedback")}
        hint={msg("approvals.feedbackHint")}
        rows={2}
        value={feedback}
        onText={setFeedback}
      />
      {call.exact && <p class="small muted">{msg("approvals.exact")}</p>}
      <div class="row">
        <ActionButton look="primary" icon="check" aria-keyshortcuts={ariaKeys("allow")} act={() => allow("once")}>
          {msg("approvals.allow")} <Key name="allow" />
        </ActionButton>
        <Menu label={msg("approvals.more")} icon="down" place="start up">
          <MenuItem onClick={() => void allow("session").catch(failed)}>{msg("approvals.session")}</MenuItem>
          <MenuItem onClick={() => void allow("always").catch(failed)}>{msg("approvals.always")}</MenuItem>
        </Menu>
        <ActionButton
          icon="close"
          aria-keyshortcuts={ariaKeys("decline")}
          act={() => reply({ outcome: "declined", feedback })}
        >
          {msg("approvals.decline")} <Key name="decline" />
        </ActionButton>
      </div>
    </>
  );
}

/** Key shows the key of a button, where there are keys. */
const Key = ({ name }: { name: ShortcutName }) =>
  singleKeys.value && (
    <kbd class="asks-key" aria-hidden="true">
      {keyText(name)}
    </kbd>
  );

function Facts({ call }: { call: Call }) {
  return (
    <dl class="facts">
      <dt>{msg("approvals.tool")}</dt>
      <dd>
        <code>{call.tool}</code>
      </dd>
      {call.skill && (
        <>
          <dt>{msg("approvals.skill")}</dt>
          <dd>{call.skill}</dd>
        </>
      )}
      {call.server && (
        <>
          <dt>{msg("approvals.server")}</dt>
          <dd>{call.server}</dd>
        </>
      )}
      {call.read_only && (
        <>
          <dt>{msg("approvals.declared")}</dt>
          <dd>{msg("approvals.readOnly")}</dd>
        </>
      )}
      {call.reason && (
        <>
          <dt>{msg("approvals.why")}</dt>
          <dd>{call.reason}</dd>
        </>
      )}
    </dl>
  );
}

function Arguments({ text }: { text: string }) {
  if (text === "{}") return <p class="small muted">{msg("approvals.noArgs")}</p>;
  return <Code text={text} language="json" height="14rem" />;
}

/** parsed parses a JSON object, or returns null. */
function parsed(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
