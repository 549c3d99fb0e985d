import { Editor as TextEditor } from "../content";
import { SelectField } from "../ui";
import { Description } from "./basics";
import type { GhostSpec } from "./document";
import { useFault } from "./faults";
import type { PartProps } from "./parts";
import { RulesEditor } from "./rules";
import { w } from "./words";

/** What a Ghost is told before anything is said. */
export function Instructions(part: PartProps) {
  const t = w();
  const spec = part.draft.doc.spec as GhostSpec;
  const fault = useFault("spec.systemPrompt");
  return (
    <section class="stack">
      <Description {...part} />
      <div class="field">
        <span class="label">{t.prompt}</span>
        <TextEditor label={t.prompt} language="markdown" height="24rem" value={spec.systemPrompt ?? ""} onChange={(systemPrompt) => part.draft.spec({ systemPrompt })} />
        <span class="hint">{t.promptHint}</span>
        {fault && <span class="error" role="alert">{fault}</span>}
      </div>
    </section>
  );
}

/** Which calls of tools are let through, and how tools are shown to MCP clients. */
export function ToolRules({ draft }: PartProps) {
  const t = w();
  const spec = draft.doc.spec as GhostSpec;
  return (
    <section class="stack loose">
      <RulesEditor rules={spec.policy ?? []} onChange={(policy) => draft.spec({ policy: policy.length ? policy : undefined })} />
      <SelectField label={t.expose} hint={spec.expose === "direct" ? t.directHint : t.metaHint} value={spec.expose ?? ""} options={t.exposes} error={useFault("spec.expose")} onText={(to) => draft.spec({ expose: to || undefined })} />
    </section>
  );
}
