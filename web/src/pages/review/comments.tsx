import { msg } from "../../shared/i18n/messages";
import { useDiscussion } from "./discussion";
import { ThreadView } from "./thread";

/** Comments shows the comments on the whole version. */
export function Comments({ number }: { number: number }) {
  const { threads } = useDiscussion();
  const here = threads.filter((t) => !t.path);
  if (!here.length) return null;
  return (
    <section class="stack" aria-labelledby="review-comments">
      <h2 id="review-comments">{msg("review.comments")}</h2>
      {here.map((t) => (
        <ThreadView key={t.id} thread={t} number={number} />
      ))}
    </section>
  );
}
