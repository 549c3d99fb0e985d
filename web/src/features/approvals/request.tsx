import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Schema } from "../../shared/api/client";
import { type FormSchema, SchemaForm } from "../../shared/content";
import { defaults, problems } from "../../shared/content/form";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, done } from "../../shared/ui";
import { keyText, pressed, singleKeys, useShortcut } from "../shortcuts/keys";
import { Approval } from "./approval";
import { focusRequest, requestClass, restoreFocus } from "./focus";
import { title } from "./phrases";
import { type ApprovalRequest, answer } from "./requests";
import "./approvals.css";

/** Question shows a request with the controls to answer it. */
export function Question({ ask, onDone }: { ask: ApprovalRequest; onDone?: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const byKeys = ask.kind === "approval";
  const reply = async (body: Schema["Answer"]) => {
    const first = await answer(ask, body);
    const focused = document.activeElement;
    if (!focused || focused === document.body || box.current?.contains(focused)) restoreFocus();
    done(first ? outcomeText(body.outcome) : msg("approvals.elsewhere"));
    onDone?.();
  };
  useShortcut("request", byKeys ? focusRequest : undefined);
  useLayoutEffect(() => {
    if (box.current!.closest("dialog")) box.current!.focus();
  }, []);
  return (
    <div
      class={`asks-question stack tight ${byKeys ? requestClass : ""}`}
      ref={box}
      tabIndex={-1}
      role="group"
      aria-label={title(ask)}
      onKeyDown={(e) => byKeys && pressed(e, ["allow", "decline"])}
    >
      {ask.kind === "approval" ? (
        <Approval ask={ask} reply={reply} />
      ) : ask.kind === "action" ? (
        <p>{msg("approvals.pageDoes")}</p>
      ) : (
        <Form ask={ask} reply={reply} />
      )}
      {byKeys && singleKeys.value && (
        <p class="small muted asks-key">
          {msg("approvals.keys", { go: keyText("request"), allow: keyText("allow"), decline: keyText("decline") })}
        </p>
      )}
    </div>
  );
}

const outcomeText = (outcome: Schema["Answer"]["outcome"]) =>
  outcome === "accepted"
    ? msg("approvals.sentYes")
    : outcome === "declined"
      ? msg("approvals.sentNo")
      : msg("approvals.sent");

/** Form asks the user for fields, or for yes or no. */
function Form({ ask, reply }: { ask: ApprovalRequest; reply: (answer: Schema["Answer"]) => Promise<void> }) {
  const schema = ask.schema as FormSchema | undefined;
  const [value, setValue] = useState<Record<string, unknown>>(() => (schema ? defaults(schema) : {}));
  const [errors, setErrors] = useState<Record<string, string>>({});
  const send = async () => {
    const found = schema ? problems(schema, value) : {};
    setErrors(found);
    if (!Object.keys(found).length) await reply({ outcome: "accepted", content: schema ? value : undefined });
  };
  return (
    <>
      <p class="asks-message">{ask.message}</p>
      {schema && <SchemaForm schema={schema} value={value} onChange={setValue} errors={errors} />}
      <div class="row">
        <ActionButton look="primary" act={send}>
          {msg("approvals.send")}
        </ActionButton>
        <ActionButton act={() => reply({ outcome: "declined" })}>{msg("approvals.decline")}</ActionButton>
      </div>
    </>
  );
}
