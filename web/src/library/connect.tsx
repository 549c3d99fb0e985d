import { Clients } from "./connect-clients";
import type { Looked } from "./detail";
import { Section } from "./needs";
import { d } from "./words-detail";

/** How a skill gets into other programs. */
export function Connect({ look: { skill } }: { look: Looked }) {
  const t = d();
  return <div class="stack loose library-connect"><Section title={t.clients} text={t.clientsText}><Clients skill={skill} /></Section></div>;
}
