import type { Schema } from "../../shared/api/client";

export type Thread = Schema["CommentThread"];

// Changes of threads apply to what is shown now, because answers of the hub may arrive in another order than they were
// sent. A thread of an earlier version keeps the line that it has in this one.

/** withComments adds the comments of a thread that are not shown yet, without those that were deleted here. */
export function withComments(now: Thread[], answer: Thread, deleted: Set<string>): Thread[] {
  if (!now.some((t) => t.id === answer.id)) return [...now, answer];
  return change(now, answer.id, (t) => {
    const added = answer.comments.filter((c) => !deleted.has(c.id) && !t.comments.some((x) => x.id === c.id));
    return { ...t, comments: [...t.comments, ...added] };
  });
}

/** withEdited replaces a comment. */
export const withEdited = (now: Thread[], answer: Thread, comment: string): Thread[] =>
  change(now, answer.id, (t) => ({
    ...t,
    comments: t.comments.map((c) => (c.id === comment ? (answer.comments.find((x) => x.id === comment) ?? c) : c)),
  }));

/** withResolved sets who resolved a thread. */
export const withResolved = (now: Thread[], answer: Thread): Thread[] =>
  change(now, answer.id, (t) => ({ ...t, resolvedBy: answer.resolvedBy, resolved: answer.resolved }));

/** withoutComment deletes a comment. The first comment of a thread remains without text while there are replies. */
export const withoutComment = (now: Thread[], comment: string): Thread[] =>
  now.flatMap((t) => {
    if (!t.comments.some((c) => c.id === comment)) return [t];
    const left =
      comment === t.id
        ? t.comments.map((c) => (c.id === comment ? { ...c, text: "", canDelete: false } : c))
        : t.comments.filter((c) => c.id !== comment);
    const empty = !left.length || (left.length === 1 && left[0]!.id === t.id && !left[0]!.text);
    return empty ? [] : [{ ...t, comments: left }];
  });

const change = (now: Thread[], id: string, f: (t: Thread) => Thread) => now.map((t) => (t.id === id ? f(t) : t));

/** openOf returns the threads that nobody resolved, those about the whole version first. */
export const openOf = (all: Thread[]): Thread[] => {
  const open = all.filter((t) => !t.resolvedBy);
  return [...open.filter((t) => !t.path), ...open.filter((t) => t.path)];
};
