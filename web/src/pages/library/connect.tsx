import { msg } from "../../shared/i18n/messages";
import { Clients } from "./connect-clients";
import type { Looked } from "./opened";
import { Section } from "./requirements";

/** Connect shows how other programs use the skill. */
export function Connect({ look: { skill } }: { look: Looked }) {
  return (
    <div class="stack loose library-connect">
      <Section title={msg("skill.clients")} text={msg("skill.clientsText")}>
        <Clients skill={skill} />
      </Section>
    </div>
  );
}
