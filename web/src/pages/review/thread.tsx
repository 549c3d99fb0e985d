import { useEffect, useRef } from "preact/hooks";
import { useUserNames } from "../../features/skills/namespaces";
import type { Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { Markdown, showHiddenCharacters } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, done, Tag, useConfirm, When } from "../../shared/ui";
import { CommentForm } from "./commentform";
import { useDiscussion } from "./discussion";
import { editKey, replyKey } from "./drafts";
import { anchorOf, type Position, refocus } from "./position";
import type { Thread } from "./threads";

/** whereOf says what a thread is about. */
export const whereOf = (position: Position): string =>
  position.line
    ? msg(position.base ? "review.onOldLine" : "review.onLine", { n: position.line })
    : msg(position.path ? "review.onFile" : "review.onVersion");

/** ThreadView shows a thread with its replies. A resolved one is collapsed. */
export function ThreadView({ thread: t, number, away }: { thread: Thread; number: number; away?: boolean }) {
  const { may, wanted, want, expanded, drafts } = useDiscussion();
  const person = useUserNames();
  const box = useRef<HTMLElement>(null);
  // Not before the frame is drawn: what contains the thread may open with it.
  useEffect(() => {
    if (wanted !== t.id) return;
    const resolved = box.current!.querySelector("details");
    if (resolved) resolved.open = true;
    box.current!.scrollIntoView({ block: "center" });
    box.current!.focus({ preventScroll: true });
    want(undefined);
  }, [wanted === t.id]);
  const earlier = t.version !== number;
  const body = (
    <>
      {(earlier || (away && t.line)) && (
        <p class="small muted row">
          {earlier && <Tag>{msg("review.fromVersion", { n: t.version })}</Tag>}
          {t.outdated && <Tag look="warn">{msg("review.outdated")}</Tag>}
          {t.text && (away || t.outdated) && <code>{showHiddenCharacters(t.text)}</code>}
        </p>
      )}
      {t.comments.map((c) => (
        <CommentView key={c.id} thread={t.id} comment={c} />
      ))}
      {may && <Answer thread={t} />}
    </>
  );
  return (
    <section class="review-thread" id={anchorOf(t.id)} tabIndex={-1} ref={box} aria-label={whereOf(t)}>
      {t.resolvedBy ? (
        <details
          open={expanded.has(t.id) || drafts.open.value.includes(replyKey(t.id))}
          onToggle={(e) => expanded[e.currentTarget.open ? "add" : "delete"](t.id)}
        >
          <summary>{msg("review.resolvedBy", { who: person(t.resolvedBy), count: t.comments.length })}</summary>
          <div class="stack tight">{body}</div>
        </details>
      ) : (
        <div class="stack tight">{body}</div>
      )}
    </section>
  );
}

/** Answer replies to a thread, resolves it, or opens it again. The focus stays at the thread. */
function Answer({ thread: t }: { thread: Thread }) {
  const { drafts, reply, resolve } = useDiscussion();
  const key = replyKey(t.id);
  if (drafts.open.value.includes(key))
    return (
      <CommentForm
        label={msg("review.reply")}
        button={msg("review.reply")}
        draft={key}
        send={async (text) => {
          await reply(t, text);
          done(msg("review.replyAdded"));
          refocus(t.id)();
        }}
        onClose={refocus(t.id)}
      />
    );
  const toggle = async () => {
    const back = refocus(t.id);
    await resolve(t, !t.resolvedBy);
    done(msg(t.resolvedBy ? "review.threadReopened" : "review.threadResolved"));
    back();
  };
  return (
    <div class="row">
      <Button small onClick={() => drafts.start(key)}>
        {msg("review.reply")}
      </Button>
      <ActionButton small icon={t.resolvedBy ? "again" : "check"} act={toggle}>
        {msg(t.resolvedBy ? "review.reopen" : "review.resolve")}
      </ActionButton>
    </div>
  );
}

function CommentView({ thread, comment: c }: { thread: string; comment: Schema["Comment"] }) {
  const { drafts, edit } = useDiscussion();
  const person = useUserNames();
  const key = editKey(c.id);
  if (drafts.open.value.includes(key))
    return (
      <CommentForm
        label={msg("review.editComment")}
        button={msg("review.save")}
        draft={key}
        text={c.text}
        send={async (text) => {
          await edit(c.id, text);
          done(msg("review.commentSaved"));
          refocus(thread)();
        }}
        onClose={refocus(thread)}
      />
    );
  return (
    <div class="review-comment">
      <div class="row small">
        <strong>{person(c.author)}</strong>
        <span class="muted">
          <When time={c.created} /> {c.edited && msg("review.edited")}
        </span>
        <Change thread={thread} comment={c} />
      </div>
      {c.text ? <Markdown text={c.text} level={4} breaks /> : <p class="muted small">{msg("review.deleted")}</p>}
    </div>
  );
}

/** Change edits or deletes a comment. */
function Change({ thread, comment: c }: { thread: string; comment: Schema["Comment"] }) {
  const { drafts, remove } = useDiscussion();
  const confirm = useConfirm();
  const mine = c.author === me.value?.user.id && c.text;
  if (!c.canDelete) return null;
  const act = async () => {
    const back = refocus(thread);
    await remove(c.id);
    done(msg("review.commentDeleted"));
    back();
  };
  return (
    <span class="row review-own">
      {mine && (
        <Button
          small
          look="quiet"
          icon="compose"
          label={msg("review.editComment")}
          onClick={() => drafts.start(editKey(c.id))}
        />
      )}
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
            act,
          })
        }
      />
      {confirm.open}
    </span>
  );
}
