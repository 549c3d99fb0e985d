import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { usePlaces } from "../library/places";
import { ActionButton, Button, done, failed, Menu, MenuItem } from "../ui";
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
  useLayoutEffect(() => input.current?.focus(), [open]);
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
            <div class="grow"><div class="truncate" title={n.title}><strong>{n.title}</strong></div><div class="small muted truncate">{n.namespace ? place(n.namespace) : t.builtIn}</div></div>
            <ActionButton small aria-label={`${t.load}: ${n.title}`} act={load(n.name, "")}>{t.load}</ActionButton>
            <Menu small label={t.actions(n.title)}>
              <MenuItem onClick={() => void load(n.name, "pinned")().catch(failed)}>{t.loadPinned}</MenuItem>
              <MenuItem onClick={() => void load(n.name, "once")().catch(failed)}>{t.loadOnce}</MenuItem>
            </Menu>
          </li>
        ))}
        {!found.length && <li class="small muted">{t.matches(0)}</li>}
      </ul>
    </div>
  );
}
