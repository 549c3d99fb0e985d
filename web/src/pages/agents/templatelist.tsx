import { msg } from "../../shared/i18n/messages";
import { useConfirm } from "../../shared/ui";
import { newInput } from "./form";
import type { InputState } from "./inputstate";
import { type Template, templates } from "./templates";

/** TemplateList fills the form from a template. It asks before it replaces what the user entered. */
export function TemplateList({ state, onTake }: { state: InputState; onTake: () => void }) {
  const confirm = useConfirm();
  const take = (t: Template) => {
    const { ghost } = newInput();
    const { namespace } = state.input.ghost.metadata;
    state.change({
      ghost: {
        ...ghost,
        metadata: { name: t.name, namespace, description: t.description },
        spec: structuredClone(t.spec),
      },
    });
    onTake();
  };
  const isTemplate = templates.some((t) => t.spec.systemPrompt === state.input.ghost.spec.systemPrompt);
  const press = (t: Template) => {
    if (!state.dirty || isTemplate) return take(t);
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
