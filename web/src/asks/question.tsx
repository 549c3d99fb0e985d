import { useState } from "preact/hooks";
import type { Schema } from "../api/client";
import { type FormSchema, SchemaForm } from "../content";
import { defaults, problems } from "../content/form";
import { ActionButton, done } from "../ui";
import { Approval } from "./approval";
import { type Ask, answer } from "./waiting";
import { w } from "./words";
import "./asks.css";

/** A question with what answers it. */
export function Question({ ask, onDone }: { ask: Ask; onDone?: () => void }) {
  const reply = async (body: Schema["Answer"]) => {
    const first = await answer(ask, body);
    done(first ? w().sent : w().elsewhere);
    onDone?.();
  };
  return (
    <div class="asks-question stack tight">
      {ask.kind === "approval" ? <Approval ask={ask} reply={reply} /> : ask.kind === "action" ? <p>{w().pageDoes}</p> : <Form ask={ask} reply={reply} />}
    </div>
  );
}

/** What a server or an agent wants to know: fields, or a yes or no. */
function Form({ ask, reply }: { ask: Ask; reply: (answer: Schema["Answer"]) => Promise<void> }) {
  const t = w();
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
        <ActionButton look="primary" act={send}>{t.send}</ActionButton>
        <ActionButton act={() => reply({ outcome: "declined" })}>{t.decline}</ActionButton>
      </div>
    </>
  );
}
