import { useEffect, useRef, useState } from "preact/hooks";
import { useUserNames } from "../../features/skills/namespaces";
import type { Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { Markdown, shown } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Tag, useConfirm, When } from "../../shared/ui";
import { CommentForm } from "./commentform";
import { type Place, type Thread, useDiscussion } from "./discussion";

/** whereOf says what a thread is about. */
export const whereOf = (place: Place): string =>
  place.line
    ? msg(place.base ? "review.onOldLine" : "review.onLine", { n: place.line })
    : msg(place.path ? "review.onFile" : "review.onVersion");

/** ThreadView shows a thread with its replies. A resolved one is collapsed. */
export function ThreadView({ thread: t, number, away }: { thread: Thread; number: number; away?: boolean }) {
  const { may, reply, resolve } = useDiscussion();
  const person = useUserNames();
  const [answering, setAnswering] = useState(false);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (location.hash !== `#thread-${t.id}`) return;
    box.current?.scrollIntoView({ block: "center" });
    box.current?.focus({ preventScroll: true });
  }, [t.id]);
  const earlier = t.version !== number;
  const body = (
    <>
      {(earlier || (away && t.line)) && (
        <p class="small muted row">
          {earlier && <Tag>{msg("review.fromVersion", { n: t.version })}</Tag>}
          {t.outdated && <Tag look="warn">{msg("review.outdated")}</Tag>}
          {t.text && (away || t.outdated) && <code>{shown(t.text)}</code>}
        </p>
      )}
      {t.comments.map((c) => (
        <CommentView key={c.id} comment={c} />
      ))}
      {may && (
        <div class="stack tight">
          {answering ? (
            <CommentForm
              label={msg("review.reply")}
              button={msg("review.reply")}
              send={async (text) => {
                await reply(t, text);
                setAnswering(false);
              }}
              cancel={() => setAnswering(false)}
            />
          ) : (
            <div class="row">
              <Button small onClick={() => setAnswering(true)}>
                {msg("review.reply")}
              </Button>
              <ActionButton small icon={t.resolvedBy ? "again" : "check"} act={() => resolve(t, !t.resolvedBy)}>
                {msg(t.resolvedBy ? "review.reopen" : "review.resolve")}
              </ActionButton>
            </div>
          )}
        </div>
      )}
    </>
  );
  return (
    <section class="review-thread" id={`thread-${t.id}`} tabIndex={-1} ref={box} aria-label={whereOf(t)}>
      {t.resolvedBy ? (
        <details>
          <summary>{msg("review.resolvedBy", { who: person(t.resolvedBy), count: t.comments.length })}</summary>
          <div class="stack tight">{body}</div>
        </details>
      ) : (
        <div class="stack tight">{body}</div>
      )}
    </section>
  );
}

function CommentView({ comment: c }: { comment: Schema["Comment"] }) {
  const { edit, remove } = useDiscussion();
  const person = useUserNames();
  const confirm = useConfirm();
  const [editing, setEditing] = useState(false);
  const own = c.author === me.value?.user.id;
  if (editing)
    return (
      <CommentForm
        label={msg("review.editComment")}
        button={msg("review.save")}
        text={c.text}
        send={async (text) => {
          await edit(c.id, text);
          setEditing(false);
        }}
        cancel={() => setEditing(false)}
      />
    );
  return (
    <div class="review-comment">
      <div class="row small">
        <strong>{person(c.author)}</strong>
        <span class="muted">
          <When time={c.created} /> {c.edited && msg("review.edited")}
        </span>
        {own && c.text && (
          <span class="row review-own">
            <Button
              small
              look="quiet"
              icon="compose"
              label={msg("review.editComment")}
              onClick={() => setEditing(true)}
            />
            <Button
              small
              look="quiet"
              icon="trash"
              label={msg("review.deleteComment")}
              onClick={() =>
                confirm.ask({
                  title: msg("review.deleteTitle"),
                  children: msg("review.deleteText"),
                  yes: msg("review.delete"),
                  danger: true,
                  act: () => remove(c.id),
                })
              }
            />
          </span>
        )}
      </div>
      {c.text ? <Markdown text={c.text} level={4} breaks /> : <p class="muted small">{msg("review.deleted")}</p>}
      {confirm.open}
    </div>
  );
}
