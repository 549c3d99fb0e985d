import type { LineTools, Side } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { Button, done } from "../../shared/ui";
import { CommentForm } from "./commentform";
import { useDiscussion } from "./discussion";
import { keyOf } from "./drafts";
import { anchor, type Position } from "./position";
import { ThreadView, whereOf } from "./thread";

/** positionOf returns the location of a line in a diff from the version base. */
const positionOf = (path: string, base: number, side: Side, line: number): Position =>
  side === "old" ? { path, base, line } : { path, line };

/**
 * useLineTools returns what shows comments below the lines of a file, and starts new ones. gone says that only the
 * version base has the file.
 */
export function useLineTools(path: string, number: number, base: number, gone?: boolean): LineTools {
  const { may, drafts, at } = useDiscussion();
  return {
    press: may ? (side, line) => drafts.start(keyOf(positionOf(path, base, side, line))) : undefined,
    label: (side, line) => msg(side === "old" ? "review.commentOnOld" : "review.commentOn", { n: line }),
    below: (side, line) => {
      const position = positionOf(path, base, side, line);
      const here = at(position);
      const writing = drafts.open.value.includes(keyOf(position));
      if (!here.length && !writing) return null;
      return (
        <div class="review-below">
          {here.map((t) => (
            <ThreadView key={t.id} thread={t} number={number} />
          ))}
          {writing && <NewComment position={position} />}
        </div>
      );
    },
    rest: (drawn) => (
      <FileThreads path={path} number={number} base={base} lines={drawn} file={gone ? { path, base } : { path }} />
    ),
  };
}

function NewComment({ position }: { position: Position }) {
  const { add } = useDiscussion();
  const leave = () => {
    const label = msg(position.base ? "review.commentOnOld" : "review.commentOn", { n: position.line ?? 0 });
    const file = document.getElementById(anchor(position.path ?? ""));
    // The button for the whole file is drawn after the form is closed.
    requestAnimationFrame(() =>
      [...(file?.querySelectorAll<HTMLElement>("button") ?? [])]
        .find(
          (b) => b.getAttribute("aria-label") === label || (!position.line && b.classList.contains("review-onfile")),
        )
        ?.focus(),
    );
  };
  return (
    <CommentForm
      label={whereOf(position)}
      button={msg("review.addComment")}
      draft={keyOf(position)}
      send={async (text) => {
        await add(position, text);
        done(msg("review.commentAdded"));
        leave();
      }}
      onClose={leave}
    />
  );
}

/** FileThreads shows the comments on a file that are not below one of the given lines. */
export function FileThreads({
  path,
  number,
  base,
  lines,
  file,
}: {
  path: string;
  number: number;
  base: number;
  /** Returns whether a line of a side is drawn. */
  lines: (side: Side, line: number) => boolean;
  /** Where a comment on the whole file belongs. Without it, there are no new ones. */
  file?: Position;
}) {
  const { threads, may, drafts } = useDiscussion();
  const isAway = (p: Position) =>
    p.path === path && !(p.line && (p.base ?? base) === base && lines(p.base ? "old" : "new", p.line));
  const away = threads.filter(isAway);
  const writing = drafts.positions().filter(isAway);
  return (
    <>
      {(away.length > 0 || writing.length > 0) && (
        <div class="review-below">
          {away.map((t) => (
            <div key={t.id}>
              {t.line ? <p class="small muted">{whereOf(t)}</p> : null}
              <ThreadView thread={t} number={number} away />
            </div>
          ))}
          {writing.map((p) => (
            <NewComment key={keyOf(p)} position={p} />
          ))}
        </div>
      )}
      {may && file && !drafts.open.value.includes(keyOf(file)) && (
        <div class="review-filefoot">
          <Button small look="quiet" class="review-onfile" icon="plus" onClick={() => drafts.start(keyOf(file))}>
            {msg("review.commentOnFile")}
          </Button>
        </div>
      )}
    </>
  );
}
