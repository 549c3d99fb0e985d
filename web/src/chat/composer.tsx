import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Button, Icon, Problem, failed } from "../ui";
import { Attach, Attached, takeFiles, together } from "./attach";
import { CompleteList, slashWord, useComplete } from "./complete";
import { type Draft, draftOf, empty, keepDraft } from "./drafts";
import { type Named, useFitting } from "./skills";
import { w } from "./words";

interface ComposerProps {
  /** The conversation, "" for one that is not begun. */
  id: string;
  send: (draft: Draft) => Promise<void>;
  /** Whether a turn is under way, so that what is sent waits. */
  busy: boolean;
  onStop?: () => Promise<unknown>;
  /** Skills that need no suggestion, as they are loaded. */
  loaded?: readonly string[];
  /** Names of skills that are built in. */
  offered?: readonly string[];
  off?: boolean;
}

/** Where one writes: skills are named with / or picked, files are added, Enter sends. */
export function Composer({ id, send, busy, onStop, loaded = [], offered = [], off }: ComposerProps) {
  const t = w();
  const area = useRef<HTMLTextAreaElement>(null);
  const hint = useId();
  const draft = draftOf(id);
  const [sending, setSending] = useState(false);
  const [error, setError] = useState<unknown>();
  const set = (more: Partial<Draft>) => keepDraft(id, { ...draftOf(id), ...more });
  const add = (files: File[]) => set({ files: together(draftOf(id).files, files) });
  const pick = (n: Named) => {
    set({ skill: n.name, text: slashWord(draft.text) === undefined ? draft.text : "" });
    area.current?.focus();
  };
  const complete = useComplete(draft.skill ? undefined : slashWord(draft.text), offered, pick);
  const ready = !!(draft.text.trim() || draft.skill || draft.files.length);
  const go = async () => {
    if (!ready || sending || off) return;
    setSending(true);
    setError(undefined);
    try {
      await send(named(draft, offered, complete.known));
      keepDraft(id, empty);
    } catch (e) {
      setError(e);
    } finally {
      setSending(false);
      area.current?.focus();
    }
  };
  const stop = useEscape(busy ? onStop : undefined);
  useGrow(area, draft.text);
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) area.current?.focus({ preventScroll: true }); // no keyboard on the screen unasked
  }, [id]);
  const key = (e: KeyboardEvent) => {
    if (e.isComposing || e.keyCode === 229) return; // the key is for what is being composed, as Chinese is
    if (complete.key(e)) return;
    if (e.key === "Enter" && !e.shiftKey && !e.altKey) {
      e.preventDefault();
      void go();
    } else if (e.key === "Backspace" && draft.skill && !draft.text) set({ skill: undefined });
  };
  return (
    <form
      class="chat-composer"
      onSubmit={(e) => {
        e.preventDefault();
        void go();
      }}
      {...takeFiles(add)}
    >
      {error !== undefined && <Problem error={error} />}
      <Fitting text={draft.skill || complete.open ? "" : draft.text} without={loaded} onPick={pick} />
      <CompleteList state={complete} />
      <div class="chat-box">
        {draft.skill && <Chosen name={draft.skill} onRemove={() => set({ skill: undefined })} />}
        <Attached files={draft.files} onRemove={(f) => set({ files: draft.files.filter((x) => x !== f) })} />
        <textarea ref={area} class="chat-input" rows={1} aria-label={t.input} placeholder={t.placeholder} aria-describedby={hint} aria-haspopup="listbox" aria-autocomplete="list"
          aria-controls={complete.open ? complete.list : undefined} aria-activedescendant={complete.active} value={draft.text} disabled={off} maxLength={200_000}
          onInput={(e) => set({ text: e.currentTarget.value })} onKeyDown={key} />
        <div class="row keep">
          <Attach onFiles={add} disabled={off} />
          <span id={hint} class="chat-hint small muted truncate grow">{stop.asked ? t.escape : t.hint}</span>
          {busy && onStop && <Button icon="stop" onClick={() => void onStop().catch(failed)}>{t.stop}</Button>}
          <Button look="primary" type="submit" icon="send" label={busy ? t.queue : t.send} disabled={!ready || off} aria-busy={sending} />
        </div>
      </div>
      <span class="visually-hidden" role="status">{stop.asked ? t.escape : complete.open ? t.matches(complete.found.length) : ""}</span>
    </form>
  );
}

/** A message that begins with /NAME is one for that skill, where there is one of the name. */
function named(draft: Draft, offered: readonly string[], known: (name: string) => boolean): Draft {
  const [, name = "", rest = ""] = /^\/(\S+)\s*([\s\S]*)$/.exec(draft.text.trim()) ?? [];
  if (draft.skill || !name || !(known(name) || offered.includes(name))) return draft;
  return { ...draft, skill: name, text: rest };
}

/** The skill that was picked for the message. */
function Chosen({ name, onRemove }: { name: string; onRemove: () => void }) {
  const t = w();
  return (
    <div class="chat-chosen">
      <Icon name="library" size={14} /> {t.withSkill} <strong>{name}</strong>
      <Button small look="quiet" icon="close" label={t.noSkill(name)} onClick={onRemove} />
    </div>
  );
}

/** Skills that fit what is being written. */
function Fitting({ text, without, onPick }: { text: string; without: readonly string[]; onPick: (n: Named) => void }) {
  const t = w();
  const found = useFitting(text.startsWith("/") ? "" : text).filter((n) => !without.includes(n.name));
  if (!found.length) return null;
  return (
    <div class="chat-fitting" role="group" aria-label={t.fitting}>
      <span class="small muted" aria-hidden="true">{t.fitting}</span>
      {found.map((n) => <button key={n.name} type="button" class="chat-chip" title={n.description} aria-label={t.useSkill(n.title)} onClick={() => onPick(n)}>{n.title}</button>)}
    </div>
  );
}

/** Escape twice stops the turn that is under way. */
function useEscape(stop?: () => Promise<unknown>): { asked: boolean } {
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    setAsked(false);
    if (!stop) return;
    let last = 0;
    let timer = 0;
    const key = (e: KeyboardEvent) => {
      if (e.key !== "Escape" || e.defaultPrevented || e.isComposing || document.querySelector("dialog[open]")) return;
      const twice = Date.now() - last < 2000;
      last = twice ? 0 : Date.now();
      setAsked(!twice);
      clearTimeout(timer);
      if (twice) void stop().catch(failed);
      else timer = window.setTimeout(() => setAsked(false), 2000);
    };
    addEventListener("keydown", key);
    return () => {
      clearTimeout(timer);
      removeEventListener("keydown", key);
    };
  }, [stop]);
  return { asked };
}

/** Makes an area as high as what is in it; CSS says how high at most. */
function useGrow(area: { current: HTMLTextAreaElement | null }, text: string) {
  useEffect(() => {
    const a = area.current;
    if (!a) return;
    a.style.height = "auto";
    a.style.height = `${a.scrollHeight}px`;
  }, [text]);
}
