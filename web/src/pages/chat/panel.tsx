import type { Load } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import type { ActiveSkill } from "./activeskills";
import type { Conversation } from "./conversation";
import { FilesPart } from "./filespart";
import { SkillsPart } from "./skillspart";
import { UsagePart } from "./usagepart";

interface PanelProps {
  c: Conversation;
  at: number;
  force: Load<ActiveSkill[]>;
  /** Runs before a skill is loaded. */
  beforeLoad: () => Promise<void>;
}

/** Panel shows the active skills, the files and the usage of a conversation. */
export function Panel({ c, at, force, beforeLoad }: PanelProps) {
  return (
    <div class="chat-panel" role="region" aria-label={msg("chat.panel")}>
      <SkillsPart id={c.id} load={force} beforeLoad={beforeLoad} />
      <FilesPart id={c.id} at={at} />
      <UsagePart id={c.id} at={at} turns={c.transcript.value.turns.length} />
    </div>
  );
}
