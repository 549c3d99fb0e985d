import { useMemo } from "preact/hooks";
import { type Transcript, type Turn, upTo } from "./transcript";

/** A message that continues the conversation at the same point as others, each on its own branch. */
export interface Version {
  turn: Turn;
  /** The last step of its newest branch, after which the conversation continues if it is chosen. */
  last: number;
}

/** The versions of a message by its input, oldest first, if there are several. */
type AllVersions = ReadonlyMap<number, readonly Version[]>;

/** The current branch of a conversation. */
export interface Branch {
  /** The turns, each up to its last step on the branch. */
  turns: readonly Turn[];
  versions: AllVersions;
}

/** A turn on a branch, and its last step there. */
interface Part {
  turn: Turn;
  last: number;
}

const whole = (turn: Turn): Part => ({ turn, last: Infinity });

/** What follows from the numbers of steps: the current branch without the content of its turns. */
interface Outline {
  /** The turns by their place among all turns. */
  parts: readonly { at: number; last: number }[];
  versions: AllVersions;
}

/** useBranch returns the current branch. Text that streams in does not change its outline. */
export function useBranch(t: Transcript): Branch {
  const outline = useMemo(() => outlineOf(t), [t.step, t.changed, t.turns.length]);
  return branchOf(t, outline);
}

/** currentBranch returns the current branch. */
export const currentBranch = (t: Transcript): Branch => branchOf(t, outlineOf(t));

const branchOf = (t: Transcript, { parts, versions }: Outline): Branch => ({
  turns: parts.map(({ at, last }) => upTo(t.turns[at]!, last)),
  versions,
});

/**
 * outlineOf follows the path to the last step. A turn that has no step yet follows the step that its
 * message names, or the last one.
 */
function outlineOf(t: Transcript): Outline {
  const tree = new Tree(t.turns);
  let parts = tree.pathTo(t.step);
  for (const turn of t.turns.filter((turn) => !turn.last)) {
    if (turn.state === "waiting" || turn.state === "running") {
      if (turn.kind === "message" && turn.after !== undefined) parts = tree.pathTo(turn.after);
      parts.push(whole(turn));
    } else insert(parts, turn, tree.owner(turn.parent));
  }
  const places = new Map(t.turns.map((turn, at) => [turn, at]));
  return {
    parts: parts
      .filter(({ turn }) => turn.kind !== "branch" || turn.state === "failed" || turn.items.length > 0)
      .map(({ turn, last }) => ({ at: places.get(turn)!, last })),
    versions: tree.versions(),
  };
}

/** insert puts a turn that ended without a step behind the turn that it followed, if that is shown. */
function insert(parts: Part[], turn: Turn, before: Turn | undefined) {
  let at = before ? parts.findIndex((p) => p.turn === before) : -1;
  if (before && at < 0) return;
  do at++;
  while (parts[at] && !parts[at]!.turn.last && parts[at]!.turn.input < turn.input);
  parts.splice(at, 0, whole(turn));
}

/** newestWith returns the last step of the newest branch that contains a step, or 0. */
export function newestWith(t: Transcript, step: number): number {
  const tree = new Tree(t.turns);
  const wanted = tree.owner(step);
  if (!wanted || wanted.last < step) return 0;
  const on = new Set([wanted]);
  for (const turn of t.turns) {
    const before = turn.last ? tree.owner(turn.parent) : undefined;
    if (before && on.has(before) && turn.parent >= step) on.add(turn);
  }
  return t.turns.findLast((turn) => on.has(turn))!.last;
}

/** Tree holds the turns that have steps. A turn follows the turn of its parent, an earlier step. */
class Tree {
  private readonly turns: readonly Turn[];
  private readonly byInput = new Map<number, Turn>();
  /** The message that each turn belongs to or follows, by input; 0 at the start. */
  private readonly message = new Map<number, number>();

  constructor(turns: readonly Turn[]) {
    this.turns = turns.filter((turn) => turn.last);
    for (const turn of this.turns) {
      this.byInput.set(turn.input, turn);
      this.message.set(turn.input, turn.kind === "message" ? turn.input : this.before(turn));
    }
  }

  /** owner returns the turn with a step. */
  owner(step: number): Turn | undefined {
    let low = 0;
    let high = this.turns.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.turns[middle]!.first <= step) low = middle + 1;
      else high = middle;
    }
    return this.turns[low - 1];
  }

  pathTo(step: number): Part[] {
    const out: Part[] = [];
    let last = step;
    for (let turn = this.owner(step); turn; turn = this.owner(last)) {
      out.push({ turn, last });
      last = turn.parent;
    }
    return out.reverse();
  }

  versions(): Map<number, readonly Version[]> {
    const newest = new Map<number, number>();
    for (const turn of this.turns.toReversed())
      for (let m = this.message.get(turn.input)!; m && !newest.has(m); m = this.before(this.byInput.get(m)!))
        newest.set(m, turn.last);
    const groups = new Map<number, Version[]>();
    for (const turn of this.turns) {
      if (turn.kind !== "message") continue;
      const version = { turn, last: newest.get(turn.input)! };
      const group = groups.get(this.before(turn));
      if (group) group.push(version);
      else groups.set(this.before(turn), [version]);
    }
    const out = new Map<number, readonly Version[]>();
    for (const group of groups.values())
      if (group.length > 1) for (const version of group) out.set(version.turn.input, group);
    return out;
  }

  /** before returns the message that a turn follows, or 0. */
  private before(turn: Turn): number {
    const previous = this.owner(turn.parent);
    return previous ? this.message.get(previous.input)! : 0;
  }
}
