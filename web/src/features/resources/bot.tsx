import { msg } from "../../shared/i18n/messages";
import { Shown, SelectField, TextField } from "../../shared/ui";
import { pageOf, type BotSpec } from "./document";
import type { PartProps } from "./editorprops";
import { useFault } from "./faults";
import { Description } from "./naming";
import { newOfKind } from "./phrases";
import { useChoice } from "./resourcelist";

/** BotBasis selects the agent that this agent extends, and its model. */
export function BotBasis(part: PartProps) {
  const spec = part.draft.doc.spec as BotSpec;
  const here = part.draft.doc.metadata.namespace;
  const ghosts = useChoice("Ghost", spec.ghostRef, here);
  const models = useChoice("Model", spec.modelRef, here);
  const ghostFault = useFault("spec.ghostRef", true);
  const modelFault = useFault("spec.modelRef", true);
  const model = part.profile?.model;
  return (
    <section class="stack">
      <Description {...part} />
      <Shown asked={ghosts.load} waiting={msg("agents.getting")}>
        {(all) =>
          all.length === 0 && !spec.ghostRef ? (
            <p class="note warn">
              {msg("agents.noGhosts")} <a href="/agents/new?kind=Ghost">{newOfKind(msg("agents.kinds.Ghost"))}</a>
            </p>
          ) : (
            <SelectField
              label={msg("agents.ghost")}
              value={ghosts.value}
              options={[...(spec.ghostRef ? [] : [["", msg("agents.choose")] as [string, string]]), ...ghosts.options]}
              hint={
                spec.ghostRef &&
                !ghosts.gone && (
                  <a
                    href={pageOf({
                      kind: "Ghost",
                      namespace: spec.ghostRef.namespace ?? here,
                      name: spec.ghostRef.name,
                    })}
                  >
                    {msg("agents.openGhost")}
                  </a>
                )
              }
              error={ghosts.gone ? msg("agents.notThere", { name: spec.ghostRef!.name }) : ghostFault}
              onText={(key) => part.draft.spec({ ghostRef: ghosts.of(key) })}
            />
          )
        }
      </Shown>
      <SelectField
        label={msg("agents.model")}
        hint={msg("agents.modelHint")}
        value={models.value}
        options={[["", msg("agents.hubsModel")], ...models.options]}
        error={models.gone ? msg("agents.notThere", { name: spec.modelRef!.name }) : modelFault}
        onText={(key) => part.draft.spec({ modelRef: models.of(key) })}
      />
      {model?.key === "missing" && <p class="note warn">{msg("agents.keyMissing", { name: model.name })}</p>}
    </section>
  );
}

/** SpecField edits a text of the spec and shows its fault. */
export function SpecField({
  part,
  name,
  label,
  hint,
  placeholder,
}: {
  part: PartProps;
  name: string;
  label: string;
  hint?: string;
  placeholder?: string;
}) {
  const value = (part.draft.doc.spec as Record<string, unknown>)[name];
  return (
    <TextField
      label={label}
      hint={hint}
      class="input mono"
      placeholder={placeholder}
      autocomplete="off"
      spellcheck={false}
      value={typeof value === "string" ? value : ""}
      error={useFault(`spec.${name}`)}
      onText={(to) => part.draft.spec({ [name]: to || undefined })}
    />
  );
}
