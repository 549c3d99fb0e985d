import { useEffect, useId, useRef, useState } from "preact/hooks";
import { usePlaces } from "../library/places";
import { ActionButton, Button, done } from "../ui";
import { type Keep, loadSkill } from "./skillspart";
import { useMatching } from "./skills";
import { w } from "./words";

/** Finds a skill by its name and loads it. */
export function LoadByHand({ id, loaded }: { id: string; loaded: string[] }) {
  const t = w();
  const [open, setOpen] = useState(false);
  const [word, setWord] = useState("");
  const list = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), [open]);
  const place = usePlaces();
  const found = useMatching(open ? word.trim() : undefined, []).filter((n) => !loaded.includes(n.name)).slice(0, 8);
  const load = (name: string, keep: Keep) => async () => {
    const got = await loadSkill(id, name, keep);
    done(t.loadedDone(got.displayName || name));
    setWord("");
    setOpen(false);
  };
  if (!open) return <div><Button small icon="plus" onClick={() => setOpen(true)}>{t.loadByHand}</Button></div>;
  return (
    <div class="chat-byhand" onKeyDown={(e) => e.key === "Escape" && (e.preventDefault(), e.stopPropagation(), setOpen(false))}>
      <div class="row keep">
        <input class="input" type="search" value={word} placeholder={t.findSkill} aria-label={t.loadByHand} aria-controls={list} onInput={(e) => setWord(e.currentTarget.value)} ref={input} />
        <Button small look="quiet" icon="close" label={t.loadByHand} aria-expanded={true} onClick={() => setOpen(false)} />
      </div>
      <ul id={list}>
        {found.map((n) => (
          <li key={n.name}>
            <div class="grow"><strong>{n.title}</strong> <span class="small muted">{n.namespace ? place(n.namespace) : t.builtIn}</span></div>
            <div class="row">
              <ActionButton small act={load(n.name, "")}>{t.load}</ActionButton>
              <ActionButton small look="quiet" icon="pin" act={load(n.name, "pinned")}>{t.loadPinned}</ActionButton>
              <ActionButton small look="quiet" act={load(n.name, "once")}>{t.loadOnce}</ActionButton>
            </div>
          </li>
        ))}
        {!found.length && <li class="small muted">{t.matches(0)}</li>}
      </ul>
    </div>
  );
}
