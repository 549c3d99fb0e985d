import type { LineTools, Side } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { Button } from "../../shared/ui";
import { CommentForm } from "./commentform";
import { type Discussion, type Place, samePlace, useDiscussion } from "./discussion";
import { ThreadView, whereOf } from "./thread";

/** placeOf returns the location of a line in a diff from the version base. */
const placeOf = (path: string, base: number, side: Side, line: number): Place =>
  side === "old" ? { path, base, line } : { path, line };

/** useLineTools returns what shows comments below the lines of a file, and starts new ones. */
export function useLineTools(path: string, number: number, base: number): LineTools {
  const all = useDiscussion();
  return {
    press: all.may ? (side, line) => all.setTarget(placeOf(path, base, side, line)) : undefined,
    label: (side, line) => msg(side === "old" ? "review.commentOnOld" : "review.commentOn", { n: line }),
    below: (side, line) => {
      const place = placeOf(path, base, side, line);
      const here = all.threads.filter((t) => samePlace(t, place));
      const writing = samePlace(all.target, place);
      if (!here.length && !writing) return null;
      return (
        <div class="review-below">
          {here.map((t) => (
            <ThreadView key={t.id} thread={t} number={number} />
          ))}
          {writing && <NewComment place={place} all={all} />}
        </div>
      );
    },
    rest: (drawn) => <FileThreads path={path} number={number} base={base} lines={drawn} />,
  };
}

function NewComment({ place, all }: { place: Place; all: Discussion }) {
  const leave = () => {
    const label = msg(place.base ? "review.commentOnOld" : "review.commentOn", { n: place.line ?? 0 });
    const file = document.getElementById(anchor(place.path ?? ""));
    const button = [...(file?.querySelectorAll<HTMLElement>("button") ?? [])].find(
      (b) => b.getAttribute("aria-label") === label || (!place.line && b.classList.contains("review-onfile")),
    );
    all.setTarget(undefined);
    button?.focus();
  };
  return (
    <CommentForm
      label={whereOf(place)}
      button={msg("review.addComment")}
      send={async (text) => {
        await all.add(place, text);
        leave();
      }}
      cancel={leave}
    />
  );
}

/** FileThreads shows the comments on a file that are not below one of the given lines. */
export function FileThreads({
  path,
  number,
  base,
  lines,
}: {
  path: string;
  number: number;
  base: number;
  /** Returns whether a line of a side is drawn. */
  lines: (side: Side, line: number) => boolean;
}) {
  const all = useDiscussion();
  const away = all.threads.filter(
    (t) => t.path === path && !(t.line && (t.base ?? base) === base && lines(t.base ? "old" : "new", t.line)),
  );
  const writing = samePlace(all.target, { path });
  return (
    <>
      {(away.length > 0 || writing) && (
        <div class="review-below">
          {away.map((t) => (
            <div key={t.id}>
              {t.line ? <p class="small muted">{whereOf(t)}</p> : null}
              <ThreadView thread={t} number={number} away />
            </div>
          ))}
          {writing && <NewComment place={{ path }} all={all} />}
        </div>
      )}
      {all.may && !writing && (
        <div class="review-filefoot">
          <Button small look="quiet" class="review-onfile" icon="plus" onClick={() => all.setTarget({ path })}>
            {msg("review.commentOnFile")}
          </Button>
        </div>
      )}
    </>
  );
}

/** anchor returns the element ID of a file. */
export const anchor = (path: string) => "file-" + encodeURIComponent(path);
