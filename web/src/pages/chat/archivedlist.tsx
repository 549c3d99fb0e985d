import { useLayoutEffect, useRef } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button, Waiting } from "../../shared/ui";
import { type ListProps, MoreSessions, Rows } from "./sessionlist";
import { archived, listOf, showArchived } from "./sessions";

/** ArchivedList lists the archived conversations, in place of the others. */
export default function ArchivedList(props: ListProps) {
  const list = listOf(archived);
  const back = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => back.current?.querySelector("button")?.focus(), []); // the button that opened the list is gone
  return (
    <section aria-label={msg("chat.archived")}>
      <div ref={back}>
        <Button small look="quiet" icon="left" onClick={() => (showArchived.value = false)}>
          {msg("folders.back")}
        </Button>
      </div>
      <h2 class="day">{msg("chat.archived")}</h2>
      {!list && <Waiting for={msg("chat.gettingList")} />}
      {list && !list.items.length && <p class="small muted">{msg("folders.noneArchived")}</p>}
      <Rows sessions={list?.items ?? []} {...props} />
      <MoreSessions name={archived} />
    </section>
  );
}
