import { msg } from "../../shared/i18n/messages";
import { Problem } from "../../shared/ui";
import { useDiscussion } from "./discussion";
import { anchorOf } from "./position";
import { ThreadView } from "./thread";

/** Comments shows the comments on the whole version. */
export function Comments({ number }: { number: number }) {
  const { threads, error } = useDiscussion();
  const here = threads.filter((t) => !t.path);
  if (!here.length && !error) return null;
  return (
    <section class="stack" aria-labelledby="review-comments">
      <h2 id="review-comments">{msg("review.comments")}</h2>
      <Unloaded />
      {here.map((t) => (
        <ThreadView key={t.id} thread={t} number={number} />
      ))}
    </section>
  );
}

/** Unloaded says that the comments are not loaded. */
export function Unloaded() {
  const { error, again } = useDiscussion();
  if (!error) return null;
  return <Problem what={msg("review.noComments")} error={error} again={() => void again()} />;
}

/** OpenThreads says how many threads nobody resolved, and leads to the first one. */
export function OpenThreads() {
  const { open, want } = useDiscussion();
  if (!open.length) return null;
  const { id } = open[0]!;
  return (
    <p class="note warn small">
      {msg("review.openThreads", { count: open.length })}{" "}
      <a href={`#${anchorOf(id)}`} onClick={() => want(id)}>
        {msg("review.firstThread")}
      </a>
    </p>
  );
}
