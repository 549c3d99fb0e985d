import { same, type Doc, type GhostSpec } from "../../features/resources/document";
import { msg } from "../../shared/i18n/messages";
import { useConfirm } from "../../shared/ui";
import { newInput } from "./form";
import type { InputState } from "./inputstate";
import { type Template, templates } from "./templates";

/** ghostOf returns the document of a template. */
function ghostOf(t: Template, namespace: string): Doc<GhostSpec> {
  const metadata = { name: t.name, namespace, description: t.description };
  return { ...newInput().ghost, metadata, spec: structuredClone(t.spec) };
}

/** isEdited reports whether a template would replace what the user entered: not an empty form or another template. */
export function isEdited(ghost: Doc<GhostSpec>): boolean {
  const { namespace } = ghost.metadata;
  const empty = newInput().ghost;
  const unedited = [
    { ...empty, metadata: { ...empty.metadata, namespace } },
    ...templates.map((t) => ghostOf(t, namespace)),
  ];
  return !unedited.some((d) => same(d, ghost));
}

/** TemplateList fills the form from a template. It asks before it replaces what the user entered. */
export function TemplateList({ state, onTake }: { state: InputState; onTake: () => void }) {
  const confirm = useConfirm();
  const take = (t: Template) => {
    state.change({ ghost: ghostOf(t, state.input.ghost.metadata.namespace) });
    onTake();
  };
  const press = (t: Template) => {
    if (!isEdited(state.input.ghost)) return take(t);
    confirm.ask({
      title: msg("agents.useTemplate", { name: msg(`agents.templates.${t.id}`) }),
      children: <p>{msg("agents.useTemplateSays")}</p>,
      yes: msg("agents.replace"),
      act: () => Promise.resolve(take(t)),
    });
  };
  return (
    <section class="stack tight">
      {confirm.open}
      <h2>{msg("agents.templatesTitle")}</h2>
      <ul class="agents-templates">
        {templates.map((t) => (
          <li key={t.id}>
            <button type="button" class="card" onClick={() => press(t)}>
              <strong>{msg(`agents.templates.${t.id}`)}</strong>
              <span class="small muted">{msg(`agents.templateSays.${t.id}`)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
