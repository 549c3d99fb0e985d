import { useEffect, useId, useRef, useState } from "preact/hooks";
import { usePlaces } from "../library/places";
import { type Named, useMatching, useSkills } from "./skills";
import { w } from "./words";

/** What is written after a / at the very beginning; undefined where there is none, or more than a word. */
export const slashWord = (text: string): string | undefined => /^\/(\S*)$/.exec(text)?.[1];

interface Completing {
  open: boolean;
  /** In the order in which they are shown. */
  found: Named[];
  groups: [place: string, skills: Named[]][];
  at: number;
  /** The id of the list, and of the one that is marked. */
  list: string;
  active?: string;
  /** Whether there is a skill of a name. */
  known: (name: string) => boolean;
  pick: (n: Named) => void;
  /** Does what a key is for; true where it was for this. */
  key: (e: KeyboardEvent) => boolean;
}

const most = 30;

/** Skills that complete the word at the cursor, by where they are at home. Arrows go through them, Tab or Enter takes one. */
export function useComplete(word: string | undefined, offered: readonly string[], onPick: (n: Named) => void): Completing {
  const list = useId();
  const place = usePlaces();
  const all = useSkills() ?? [];
  const [at, setAt] = useState(0);
  const [left, setLeft] = useState<string>();
  const matches = useMatching(word, offered).slice(0, most);
  const groups = grouped(matches, (n) => (n.namespace ? place(n.namespace) : w().builtIn));
  const found = groups.flatMap(([, skills]) => skills);
  const open = word !== undefined && word !== left;
  useEffect(() => setAt(0), [word]);
  useEffect(() => {
    if (word === undefined) setLeft(undefined);
  }, [word]);
  const marked = Math.min(at, found.length - 1);
  const key = (e: KeyboardEvent) => {
    if (!open || !found.length) return false;
    if (e.key === "ArrowDown") setAt((marked + 1) % found.length);
    else if (e.key === "ArrowUp") setAt((marked - 1 + found.length) % found.length);
    else if (e.key === "Tab" || (e.key === "Enter" && !e.shiftKey)) onPick(found[marked]!);
    else if (e.key === "Escape") setLeft(word);
    else return false;
    e.preventDefault();
    e.stopPropagation();
    return true;
  };
  const known = (name: string) => all.some((s) => s.name === name);
  return { open, found, groups, at: marked, list, active: open && found.length ? `${list}-${marked}` : undefined, known, pick: onPick, key };
}

function grouped(all: Named[], placeOf: (n: Named) => string): [string, Named[]][] {
  const out = new Map<string, Named[]>();
  for (const n of all) out.set(placeOf(n), [...(out.get(placeOf(n)) ?? []), n]);
  return [...out];
}

/** The list above the input. */
export function CompleteList({ state }: { state: Completing }) {
  const t = w();
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }), [state.at, state.open]);
  if (!state.open) return null;
  if (!state.found.length) return <div class="chat-complete"><p class="small muted">{t.matches(0)}</p></div>;
  let at = 0;
  return (
    <div class="chat-complete" role="listbox" id={state.list} aria-label={t.choose} ref={box}>
      {state.groups.map(([place, skills]) => (
        <div key={place} role="group" aria-label={place}>
          <p class="place" aria-hidden="true">{place}</p>
          {skills.map((n) => {
            const mine = at++;
            return (
              <div key={n.name} id={`${state.list}-${mine}`} role="option" aria-selected={mine === state.at} class="option" onPointerDown={(e) => e.preventDefault()} onClick={() => state.pick(n)}>
                <strong>/{n.name}</strong> {n.title !== n.name && <span>{n.title}</span>} <span class="muted truncate">{n.description}</span>
              </div>
            );
          })}
        </div>
      ))}
    </div>
  );
}
