import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useNamespaceNames } from "../../features/skills/namespaces";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, done, failed, Menu, MenuItem } from "../../shared/ui";
import { choosing, type Keep, loadSkill } from "./loadskill";
import { matchesText } from "./phrases";
import { useMatching } from "./skillsearch";

interface LoadByHandProps {
  id: string;
  /** The names of the active skills. */
  loaded: string[];
  beforeLoad: () => Promise<void>;
}

/** LoadByHand finds a skill by name and loads it. */
export function LoadByHand({ id, loaded, beforeLoad }: LoadByHandProps) {
  const open = choosing.value === id;
  const setOpen = (on: boolean) => (choosing.value = on ? id : "");
  const [word, setWord] = useState("");
  const list = useId();
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.focus(), [open]);
  const place = useNamespaceNames();
  const found = useMatching(open ? word.trim() : undefined, [])
    .filter((n) => !loaded.includes(n.name))
    .slice(0, 8);
  const load = (name: string, keep: Keep) => async () => {
    await beforeLoad();
    const got = await loadSkill(id, name, keep);
    done(msg("chat.loadedDone", { name: got.displayName || name }));
    setWord("");
    setOpen(false);
  };
  if (!open)
    return (
      <div>
        <Button small icon="plus" onClick={() => setOpen(true)}>
          {msg("chat.loadByHand")}
        </Button>
      </div>
    );
  return (
    <div
      class="chat-byhand"
      onKeyDown={(e) => e.key === "Escape" && (e.preventDefault(), e.stopPropagation(), setOpen(false))}
    >
      <div class="row keep">
        <input
          class="input"
          type="search"
          value={word}
          placeholder={msg("chat.findSkill")}
          aria-label={msg("chat.loadByHand")}
          aria-controls={list}
          onInput={(e) => setWord(e.currentTarget.value)}
          ref={input}
        />
        <Button
          small
          look="quiet"
          icon="close"
          label={msg("chat.loadByHand")}
          aria-expanded={true}
          onClick={() => setOpen(false)}
        />
      </div>
      <ul id={list}>
        {found.map((n) => (
          <li key={n.name}>
            <div class="grow">
              <div class="truncate" title={n.title}>
                <strong>{n.title}</strong>
              </div>
              <div class="small muted truncate">{n.namespace ? place(n.namespace) : msg("chat.builtIn")}</div>
            </div>
            <ActionButton small aria-label={`${msg("chat.load")}: ${n.title}`} act={load(n.name, "")}>
              {msg("chat.load")}
            </ActionButton>
            <Menu small label={msg("chat.actions", { title: n.title })}>
              <MenuItem onClick={() => void load(n.name, "pinned")().catch(failed)}>{msg("chat.loadPinned")}</MenuItem>
              <MenuItem onClick={() => void load(n.name, "once")().catch(failed)}>{msg("chat.loadOnce")}</MenuItem>
            </Menu>
          </li>
        ))}
        {!found.length && <li class="small muted">{matchesText(0)}</li>}
      </ul>
    </div>
  );
}
