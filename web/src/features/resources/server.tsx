import { msg } from "../../shared/i18n/messages";
import { Promises } from "../servers/annotations";
import { isCommand, type Config } from "../servers/config";
import { FormOrJSON } from "../servers/formorjson";
import { TrialButton, TrialResult, useTrial } from "../servers/trial";
import { same } from "./document";
import type { PartProps } from "./editorprops";
import { useFault } from "./faults";
import { Description } from "./naming";
import { useSecrets } from "./secrets";
import "../servers/servers.css";

/** ServerBasis edits the connection of a shared server. */
export function ServerBasis(part: PartProps) {
  const { draft, place, base } = part;
  const config = draft.doc.spec as Config;
  const secrets = useSecrets(draft.doc.metadata.namespace).map((s) => s.name);
  const fault = useFault("spec", true);
  const saved = place && same(draft.doc, base);
  const trial = useTrial(
    saved
      ? { kind: "MCPServer", namespace: place.namespace, name: place.name }
      : { name: draft.doc.metadata.name || "server", config },
  );
  return (
    <section class="stack">
      <Description {...part} />
      <FormOrJSON
        name={draft.doc.metadata.name || "server"}
        config={config}
        secrets={secrets}
        error={fault}
        onChange={(spec) => draft.set({ ...draft.doc, spec })}
      />
      <Promises config={config} saved={!!saved} />
      {!part.readOnly && (
        <div>
          <TrialButton trial={trial} />
        </div>
      )}
      <TrialResult
        trial={trial}
        note={saved ? undefined : isCommand(config) ? msg("agents.draftCommand") : msg("agents.draftTest")}
      />
    </section>
  );
}
