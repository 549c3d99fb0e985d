import { msg } from "../../shared/i18n/messages";
import { CommentForm } from "./commentform";
import { useDiscussion } from "./discussion";
import { ThreadView } from "./thread";

/** Comments shows the comments on the whole version, and a form for another one. */
export function Comments({ number }: { number: number }) {
  const { threads, may, add } = useDiscussion();
  const here = threads.filter((t) => !t.path);
  if (!may && !here.length) return null;
  return (
    <section class="stack" aria-labelledby="review-comments">
      <h2 id="review-comments">{msg("review.comments")}</h2>
      {here.map((t) => (
        <ThreadView key={t.id} thread={t} number={number} />
      ))}
      {may && (
        <CommentForm
          label={msg("review.commentOnVersion")}
          button={msg("review.addComment")}
          send={(text) => add({}, text)}
        />
      )}
    </section>
  );
}
