import { useEffect, useState } from "preact/hooks";
import type { Asked } from "../api/client";
import type { Conversation } from "./conversation";
import { FilesPart } from "./filespart";
import type { InForce } from "./inforce";
import { SkillsPart } from "./skillspart";
import { UsagePart } from "./usagepart";
import { w } from "./words";

/** What is in force in a conversation, its files, and what it took. */
export function Panel({ c, at, force }: { c: Conversation; at: number; force: Asked<InForce[]> }) {
  const t = w();
  return (
    <div class="chat-panel" role="region" aria-label={t.panel}>
      <SkillsPart id={c.id} asked={force} />
      <FilesPart id={c.id} at={at} />
      <UsagePart id={c.id} at={at} turns={c.transcript.value.turns.length} />
    </div>
  );
}

/** A number once it has been the same for a moment, so that not every step has the hub asked anew; -1 is none as yet. */
export function useSettled(n: number): number {
  const [settled, set] = useState(n);
  useEffect(() => {
    if (settled < 0) return set(n);
    const timer = setTimeout(() => set(n), 400);
    return () => clearTimeout(timer);
  }, [n]);
  return settled;
}
