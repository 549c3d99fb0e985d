import { FormOrJSON } from "../servers/both";
import { isCommand, type Config } from "../servers/config";
import { Promises } from "../servers/promises";
import { TrialButton, TrialResult, useTrial } from "../servers/trial";
import { Description } from "./basics";
import { same } from "./document";
import { useFault } from "./faults";
import type { PartProps } from "./parts";
import { useSecrets } from "./secrets";
import { w } from "./words";
import "../servers/servers.css";

/** How a server is reached that is not of one agent. */
export function ServerBasis(part: PartProps) {
  const t = w();
  const { draft, place, base } = part;
  const config = draft.doc.spec as Config;
  const secrets = useSecrets(draft.doc.metadata.namespace).map((s) => s.name);
  const fault = useFault("spec", true);
  const kept = place && same(draft.doc, base);
  const trial = useTrial(kept ? { kind: "MCPServer", namespace: place.namespace, name: place.name } : { name: draft.doc.metadata.name || "server", config });
  return (
    <section class="stack">
      <Description {...part} />
      <FormOrJSON name={draft.doc.metadata.name || "server"} config={config} secrets={secrets} error={fault} onChange={(spec) => draft.set({ ...draft.doc, spec })} />
      <Promises config={config} saved={!!kept} />
      <div><TrialButton trial={trial} /></div>
      <TrialResult trial={trial} note={kept ? undefined : isCommand(config) ? t.draftCommand : t.draftTest} />
    </section>
  );
}
