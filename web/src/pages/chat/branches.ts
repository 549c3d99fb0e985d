import type { Transcript, Turn } from "./transcript";

/** A message that continues the conversation at the same point as others, each on its own branch. */
export interface Version {
  turn: Turn;
  /** The last step of its newest branch, after which the conversation continues if it is chosen. */
  last: number;
}

/** The current branch of a conversation. */
export interface Branch {
  turns: readonly Turn[];
  /** The versions of a message by its input, oldest first, if there are several. */
  versions: ReadonlyMap<number, readonly Version[]>;
}

/**
 * currentBranch returns the turns on the path to the last step. A turn that has no step yet follows
 * the step that its message names, or the last one.
 */
export function currentBranch(t: Transcript): Branch {
  const tree = new Tree(t.turns);
  let turns = tree.pathTo(t.step);
  for (const turn of t.turns.filter((turn) => !turn.last)) {
    if (turn.state === "waiting" || turn.state === "running") {
      if (turn.kind === "message" && turn.after !== undefined) turns = tree.pathTo(turn.after);
      turns.push(turn);
    } else insert(turns, turn, tree.owner(turn.parent));
  }
  return {
    turns: turns.filter((turn) => turn.kind !== "branch" || turn.state === "failed"),
    versions: tree.versions(),
  };
}

/** insert puts a turn that ended without a step behind the turn that it followed, if that is shown. */
function insert(turns: Turn[], turn: Turn, before: Turn | undefined) {
  let at = before ? turns.indexOf(before) : -1;
  if (before && at < 0) return;
  do at++;
  while (turns[at] && !turns[at]!.last && turns[at]!.input < turn.input);
  turns.splice(at, 0, turn);
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

  pathTo(step: number): Turn[] {
    const out: Turn[] = [];
    for (let turn = this.owner(step); turn; turn = this.owner(turn.parent)) out.push(turn);
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
