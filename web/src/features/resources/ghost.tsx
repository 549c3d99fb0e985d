import { Editor as TextEditor } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { SelectField } from "../../shared/ui";
import type { GhostSpec } from "./document";
import type { PartProps } from "./editorprops";
import { useFault } from "./faults";
import { Description } from "./naming";
import { exposeOptions } from "./phrases";
import { RulesEditor } from "./rules";

/** Instructions edits the instructions of an agent. */
export function Instructions(part: PartProps) {
  const spec = part.draft.doc.spec as GhostSpec;
  const fault = useFault("spec.systemPrompt");
  return (
    <section class="stack">
      <Description {...part} />
      <div class="field">
        <span class="label">{msg("agents.prompt")}</span>
        <TextEditor
          label={msg("agents.prompt")}
          language="markdown"
          height="24rem"
          readOnly={part.readOnly}
          value={spec.systemPrompt ?? ""}
          onChange={(systemPrompt) => part.draft.spec({ systemPrompt })}
        />
        <span class="hint">{msg("agents.promptHint")}</span>
        {fault && (
          <span class="error" role="alert">
            {fault}
          </span>
        )}
      </div>
    </section>
  );
}

/** ToolRules edits the tool rules and the way tools are shown to MCP clients. */
export function ToolRules({ draft }: PartProps) {
  const spec = draft.doc.spec as GhostSpec;
  return (
    <section class="stack loose">
      <RulesEditor
        rules={spec.policy ?? []}
        onChange={(policy) => draft.spec({ policy: policy.length ? policy : undefined })}
      />
      <SelectField
        label={msg("agents.expose")}
        hint={spec.expose === "direct" ? msg("agents.directHint") : msg("agents.metaHint")}
        value={spec.expose ?? ""}
        options={exposeOptions()}
        error={useFault("spec.expose")}
        onText={(to) => draft.spec({ expose: to || undefined })}
      />
    </section>
  );
}
