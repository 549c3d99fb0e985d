import { useFault } from "../../features/resources/faults";
import { useChoice } from "../../features/resources/resourcelist";
import { msg } from "../../shared/i18n/messages";
import { SelectField } from "../../shared/ui";
import type { InputState } from "./inputstate";

/** ModelField selects the model of an agent. */
export function ModelField({ state }: { state: InputState }) {
  const { model, ghost } = state.input;
  const models = useChoice("Model", model, ghost.metadata.namespace);
  const fault = useFault("spec.modelRef", true);
  return (
    <SelectField
      label={msg("agents.model")}
      hint={
        <>
          {msg("agents.modelHint")} <a href="/agents?kind=Model">{msg("agents.many.Model")}</a>
        </>
      }
      value={models.value}
      options={[["", msg("agents.hubsModel")], ...models.options]}
      error={models.gone ? msg("agents.notThere", { name: model!.name }) : fault}
      onText={(key) => state.change({ model: models.of(key) })}
    />
  );
}
