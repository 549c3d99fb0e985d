import { Shown, SelectField, TextField } from "../ui";
import { Description } from "./basics";
import { pageOf, type BotSpec } from "./document";
import { useFault } from "./faults";
import type { PartProps } from "./parts";
import { useChoice } from "./things";
import { w } from "./words";

/** Which Ghost a Bot is of, and which model it runs on. */
export function BotBasis(part: PartProps) {
  const t = w();
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
      <Shown asked={ghosts.asked} waiting={t.getting}>
        {(all) => all.length === 0 && !spec.ghostRef
          ? <p class="note warn">{t.noGhosts} <a href="/agents/new?kind=Ghost">{t.makeOne(t.kinds.Ghost)}</a></p>
          : <SelectField label={t.ghost} value={ghosts.value} options={[...(spec.ghostRef ? [] : [["", t.choose] as [string, string]]), ...ghosts.options]} hint={spec.ghostRef && !ghosts.gone && <a href={pageOf({ kind: "Ghost", namespace: spec.ghostRef.namespace ?? here, name: spec.ghostRef.name })}>{t.openGhost}</a>} error={ghosts.gone ? t.notThere(spec.ghostRef!.name) : ghostFault} onText={(key) => part.draft.spec({ ghostRef: ghosts.of(key) })} />}
      </Shown>
      <SelectField label={t.model} hint={t.modelHint} value={models.value} options={[["", t.hubsModel], ...models.options]} error={models.gone ? t.notThere(spec.modelRef!.name) : modelFault} onText={(key) => part.draft.spec({ modelRef: models.of(key) })} />
      {model?.key === "missing" && <p class="note warn">{t.keyMissing(model.name)}</p>}
    </section>
  );
}

/** A line of text of a spec, with what is wrong with it. */
export function SpecField({ part, name, label, hint, placeholder }: { part: PartProps; name: string; label: string; hint?: string; placeholder?: string }) {
  const value = (part.draft.doc.spec as Record<string, unknown>)[name];
  return <TextField label={label} hint={hint} class="input mono" placeholder={placeholder} autocomplete="off" spellcheck={false} value={typeof value === "string" ? value : ""} error={useFault(`spec.${name}`)} onText={(to) => part.draft.spec({ [name]: to || undefined })} />;
}
