import { holds, same, test } from "../../../test/units/check";
import { draftsOf, keyOf, replyKey } from "./drafts";
import { openOf, type Thread, withComments, withEdited, withoutComment, withResolved } from "./threads";

const comment = (id: string, text = id) => ({
  id,
  author: "ada",
  text,
  created: "2026-01-01T00:00:00Z",
  canDelete: true,
});
const thread = (id: string, more: Partial<Thread> = {}): Thread =>
  ({ id, version: 1, side: "new", outdated: false, comments: [comment(id)], ...more }) as Thread;

test("review threads: answers in any order keep each other's changes", () => {
  const shown = [thread("a", { line: 7 }), thread("b")];
  const replied = thread("a", { line: 3, comments: [comment("a"), comment("r")] });
  const resolved = thread("a", { line: 3, resolvedBy: "eve", resolved: "2026-01-02T00:00:00Z" });
  const one = withResolved(withComments(shown, replied, new Set()), resolved);
  const other = withComments(withResolved(shown, resolved), replied, new Set());
  for (const now of [one, other]) {
    same(
      now[0]!.comments.map((c) => c.id),
      ["a", "r"],
    );
    same([now[0]!.resolvedBy, now[0]!.resolved, now[0]!.line], ["eve", "2026-01-02T00:00:00Z", 7]);
    same(now[1], shown[1]);
  }
  const edited = withEdited(one, thread("a", { comments: [comment("a", "new"), comment("r", "old")] }), "a");
  same(
    edited[0]!.comments.map((c) => c.text),
    ["new", "r"],
  );
});

test("review threads: a deleted comment stays deleted, and ends its thread with the last reply", () => {
  const shown = [thread("a", { comments: [comment("a"), comment("r")] })];
  const first = withoutComment(shown, "a");
  same(
    first[0]!.comments.map((c) => c.text),
    ["", "r"],
  );
  same(withoutComment(first, "r"), []);
  const late = thread("a", { comments: [comment("a"), comment("r"), comment("s")] });
  same(
    withComments(withoutComment(shown, "r"), late, new Set(["r"]))[0]!.comments.map((c) => c.id),
    ["a", "s"],
  );
  same(withComments([], late, new Set()), [late]);
});

test("review threads: the first open one is about the whole version", () => {
  const all = [thread("a", { path: "run.sh" }), thread("b", { resolvedBy: "eve" }), thread("c")];
  same(
    openOf(all).map((t) => t.id),
    ["c", "a"],
  );
});

test("review drafts: each position keeps its own text until it is sent or closed", () => {
  const drafts = draftsOf("tides", 2);
  const line = { path: "run.sh", line: 3 };
  drafts.start(keyOf(line));
  drafts.keep(keyOf(line), "Why?");
  drafts.start(keyOf({ path: "run.sh", base: 1, line: 3 }));
  drafts.start(replyKey("a"));
  same(draftsOf("tides", 2).text(keyOf(line)), "Why?");
  same(draftsOf("tides", 3).positions(), []);
  same(drafts.positions(), [line, { path: "run.sh", base: 1, line: 3 }]);
  holds(!drafts.isNew(keyOf(line)) && drafts.isNew(replyKey("a")), "the last text box gets the focus");
  holds(!drafts.isNew(replyKey("a")), "only once");
  same(drafts.hasText(), true);
  drafts.end(keyOf(line));
  same(drafts.hasText(), false);
  same([drafts.text(keyOf(line)), drafts.positions().length], [undefined, 1]);
});
