import type { ComponentChildren } from "preact";
import { count } from "../../../shared/i18n/format";
import { findMsg, msg } from "../../../shared/i18n/messages";

const kinds = ["added", "updated", "unchanged", "skipped"] as const;

/** What became of one skill, or a warning about it or its source. */
export interface Outcome {
  kind: (typeof kinds)[number] | "warning";
  /** Why it was skipped, as a code of the hub or of the page. */
  reason?: string;
  key: string | number;
  shown: ComponentChildren;
}

/** Summary counts what became of skills. */
export function Summary({ outcomes }: { outcomes: Outcome[] }) {
  return (
    <section class="stack tight" aria-label={msg("add.result")}>
      <p role="status">
        <strong>
          {kinds
            .map((kind) => [kind, outcomes.filter((o) => o.kind === kind).length] as const)
            .filter(([kind, n]) => n || kind !== "updated")
            .map(([kind, n]) => `${msg(`add.${kind}`)}: ${count(n)}`)
            .join(" · ")}
        </strong>
      </p>
      <Groups outcomes={outcomes} />
    </section>
  );
}

/** Groups lists skills with the same outcome and reason in collapsed groups. */
export function Groups({ outcomes }: { outcomes: Outcome[] }) {
  const groups = new Map<string, Outcome[]>();
  for (const kind of [...kinds, "warning"])
    for (const o of outcomes) {
      const title = titleOf(o);
      if (o.kind === kind) groups.set(title, [...(groups.get(title) ?? []), o]);
    }
  return (
    <>
      {[...groups].map(([title, all]) => (
        <details key={title} class={`note ${looks[all[0]!.kind]}`}>
          <summary>
            {title}: {count(all.length)}
          </summary>
          <ul class="add-group">
            {all.map((o) => (
              <li key={o.key}>{o.shown}</li>
            ))}
          </ul>
        </details>
      ))}
    </>
  );
}

const looks = { added: "good", updated: "good", unchanged: "", skipped: "warn", warning: "" };

const titleOf = ({ kind, reason = "" }: Outcome) =>
  kind === "skipped" ? (findMsg("add.skippedFor", reason) ?? msg("add.cannot")) : msg(`add.${kind}`);
