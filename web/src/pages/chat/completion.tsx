import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useNamespaceNames } from "../../features/skills/namespaces";
import { showHiddenCharacters } from "../../shared/content/visibletext";
import { msg } from "../../shared/i18n/messages";
import { matchesText } from "./phrases";
import { type Named, useMatching } from "./skillsearch";

/** slashWord returns the word after a leading /, or undefined. */
export const slashWord = (text: string): string | undefined => /^\/(\S*)$/.exec(text)?.[1];

interface Completing {
  open: boolean;
  /** The matches, in display order. */
  found: Named[];
  groups: [place: string, skills: Named[]][];
  at: number;
  /** The ID of the list, and of the marked option. */
  list: string;
  active?: string;
  pick: (n: Named) => void;
  /** Handles a key. It returns true if the key was used. */
  key: (e: KeyboardEvent) => boolean;
}

const most = 30;

/**
 * useComplete suggests skills for the word at the cursor, grouped by namespace. Arrow keys move,
 * Tab or Enter selects.
 */
export function useComplete(
  word: string | undefined,
  offered: readonly string[],
  onPick: (n: Named) => void,
): Completing {
  const list = useId();
  const place = useNamespaceNames(word !== undefined);
  const [at, setAt] = useState(0);
  const [left, setLeft] = useState<string>();
  const matches = useMatching(word, offered).slice(0, most);
  const groups = grouped(matches, (n) => (n.namespace ? place(n.namespace) : msg("chat.builtIn")));
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
  return {
    open,
    found,
    groups,
    at: marked,
    list,
    active: open && found.length ? `${list}-${marked}` : undefined,
    pick: onPick,
    key,
  };
}

function grouped(all: Named[], placeOf: (n: Named) => string): [string, Named[]][] {
  const out = new Map<string, Named[]>();
  for (const n of all) out.set(placeOf(n), [...(out.get(placeOf(n)) ?? []), n]);
  return [...out];
}

/** CompleteList shows the suggestions above the input. */
export function CompleteList({ state }: { state: Completing }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(
    () => box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }),
    [state.at, state.open],
  );
  if (!state.open) return null;
  if (!state.found.length)
    return (
      <div class="chat-complete">
        <p class="small muted">{matchesText(0)}</p>
      </div>
    );
  let at = 0;
  return (
    <div class="chat-complete" role="listbox" id={state.list} aria-label={msg("chat.choose")} ref={box}>
      {state.groups.map(([place, skills]) => (
        <div key={place} role="group" aria-label={place}>
          <p class="place" aria-hidden="true">
            {showHiddenCharacters(place)}
          </p>
          {skills.map((n) => {
            const mine = at++;
            return (
              <div
                key={n.name}
                id={`${state.list}-${mine}`}
                role="option"
                aria-selected={mine === state.at}
                class="option"
                onPointerDown={(e) => e.preventDefault()}
                onClick={() => state.pick(n)}
              >
                <strong>/{showHiddenCharacters(n.name)}</strong>{" "}
                {n.title !== n.name && <span>{showHiddenCharacters(n.title)}</span>}{" "}
                <span class="muted truncate">{showHiddenCharacters(n.description)}</span>
              </div>
            );
          })}
        </div>
      ))}
    </div>
  );
}
