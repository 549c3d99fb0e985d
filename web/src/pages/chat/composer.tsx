import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isKey, useShortcut } from "../../features/shortcuts/keys";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Icon, Problem, failed } from "../../shared/ui";
import { Attach, Attached, useFiles } from "./attach";
import { CompleteList, slashWord, useComplete } from "./completion";
import { cancelDraft, changeDraft, deliver, type Draft, draftOf } from "./drafts";
import { useGrow } from "./growingtext";
import { asImages, filesFor, imageLimits, isImage, isPicture } from "./images";
import { ModelMenu } from "./modelmenu";
import { type Model, modelFor, titleOf } from "./models";
import { matchesText } from "./phrases";
import { isSkill, type Named, useSuggestedSkills } from "./skillsearch";

interface ComposerProps {
  /** The conversation, or "" for a new one. */
  id: string;
  send: (draft: Draft) => Promise<void>;
  /** Whether a turn is running, so that messages are queued. */
  busy: boolean;
  onStop?: () => Promise<unknown>;
  /** Edits the last message. */
  onEdit?: () => void;
  /** The active skills, which are not suggested. */
  loaded?: readonly string[];
  /** The names of built-in skills. */
  offered?: readonly string[];
  off?: boolean;
  /** Leaves the focus where it is. */
  quiet?: boolean;
  /** The models that the user may choose, once loaded. */
  models?: Model[];
  /** The ID of the chosen model, or "" for the default. */
  model?: string;
  onModel?: (id: string) => void;
}

/** Composer is the message input: / selects skills, files can be attached, Enter sends. */
export function Composer(props: ComposerProps) {
  const { id, send, busy, onStop, onEdit, loaded = [], offered = [], off, quiet, models, model = "", onModel } = props;
  const form = useRef<HTMLFormElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const hint = useId();
  const draft = draftOf(id);
  const frozen = !!draft.state;
  const [error, setError] = useState<unknown>();
  const set = (more: Partial<Draft>) => changeDraft(id, more);
  const reading = useRef<Promise<void> | undefined>(undefined); // of files, for which the message waits
  const add = (files: Promise<File[]>) => {
    const before = reading.current;
    const read = async () => {
      await before;
      const { mergeFiles: together } = await import("./attachment");
      const more = await files;
      set({ files: together(draftOf(id).files, more) });
    };
    reading.current = read().catch(failed);
  };
  const pick = (n: Named) => {
    set({ skill: n.name, text: slashWord(draft.text) === undefined ? draft.text : "" });
    area.current?.focus();
  };
  const complete = useComplete(draft.skill || frozen ? undefined : slashWord(draft.text), offered, pick);
  const ready = !!(draft.text.trim() || draft.skill || draft.files.length);
  const go = async () => {
    if (!ready || frozen || off) return;
    setError(undefined);
    await reading.current;
    if (draftOf(id).state) return; // sent meanwhile
    try {
      await deliver(id, async (d) => send({ ...(await named(d, offered)), files: filesFor(d.files, readsImages) }));
    } catch (e) {
      setError(e);
    }
    area.current?.focus();
  };
  useFiles(form, add);
  const inUse = modelFor(models, model);
  const readsImages = !inUse || !!inUse.images;
  const stop = useEscape(busy ? onStop : undefined);
  useGrow(area, draft.text);
  useShortcut("focus", () => area.current?.focus());
  useLayoutEffect(() => {
    if (!quiet && matchMedia("(hover: hover)").matches) area.current?.focus({ preventScroll: true }); // don't open an on-screen keyboard
  }, [id]);
  const key = (e: KeyboardEvent) => {
    if (e.isComposing || e.keyCode === 229) return; // the key belongs to an input method, such as for Chinese
    if (complete.key(e)) return;
    if (onEdit && !ready && !frozen && isKey(e, "edit")) {
      e.preventDefault();
      onEdit();
      return;
    }
    if (e.key === "Enter" && !e.shiftKey && !e.altKey) {
      e.preventDefault();
      void go();
    } else if (e.key === "Backspace" && draft.skill && !draft.text) set({ skill: undefined });
  };
  return (
    <form
      ref={form}
      class="chat-composer"
      onSubmit={(e) => {
        e.preventDefault();
        void go();
      }}
    >
      {error !== undefined && <Problem error={error} />}
      {models && !modelFor(models, model) && <p class="note warn">{msg("chat.modelGoneText")}</p>}
      {draft.state === "waiting" && (
        <div class="note warn row keep" role="status">
          <span class="grow">{msg("chat.sentLater")}</span>
          <Button small onClick={() => cancelDraft(id)}>
            {msg("ui.cancel")}
          </Button>
        </div>
      )}
      <Fitting text={draft.skill || frozen || complete.open ? "" : draft.text} without={loaded} onPick={pick} />
      <CompleteList state={complete} />
      <div class="chat-box">
        {draft.skill && <Chosen name={draft.skill} disabled={frozen} onRemove={() => set({ skill: undefined })} />}
        <Attached
          files={draft.files}
          readsImages={readsImages}
          disabled={frozen}
          onRemove={(f) => set({ files: draft.files.filter((x) => x !== f) })}
        />
        {inUse && <NotAsImages files={filesFor(draft.files, readsImages)} model={inUse} />}
        <textarea
          ref={area}
          class="chat-input"
          rows={1}
          aria-label={msg("chat.input")}
          placeholder={msg("chat.placeholder")}
          aria-describedby={hint}
          aria-haspopup="listbox"
          aria-autocomplete="list"
          aria-controls={complete.open ? complete.list : undefined}
          aria-activedescendant={complete.active}
          value={draft.text}
          disabled={off}
          readOnly={frozen}
          maxLength={200_000}
          onInput={(e) => set({ text: e.currentTarget.value })}
          onKeyDown={key}
        />
        <div class="row keep">
          <Attach onFiles={add} disabled={off || frozen} />
          {models && onModel && <ModelMenu models={models} chosen={model} onChoose={onModel} />}
          <span id={hint} class="chat-hint small muted truncate grow">
            {stop.asked ? msg("chat.escape") : msg("chat.hint")}
          </span>
          {busy && onStop && (
            <Button icon="stop" onClick={() => void onStop().catch(failed)}>
              {msg("chat.stop")}
            </Button>
          )}
          <Button
            look="primary"
            type="submit"
            icon="send"
            label={busy ? msg("chat.queue") : msg("chat.send")}
            disabled={!ready || off}
            aria-busy={frozen}
          />
        </div>
      </div>
      <span class="visually-hidden" role="status">
        {stop.asked ? msg("chat.escape") : complete.open ? matchesText(complete.found.length) : ""}
      </span>
    </form>
  );
}

/** named returns the draft with the skill of a leading /NAME, if that skill exists. */
async function named(draft: Draft, offered: readonly string[]): Promise<Draft> {
  const [, name = "", rest = ""] = /^\/(\S+)\s*([\s\S]*)$/.exec(draft.text.trim()) ?? [];
  if (draft.skill || !name || !(offered.includes(name) || (await isSkill(name)))) return draft;
  return { ...draft, skill: name, text: rest };
}

/** NotAsImages says why the model does not see all images of a message. */
function NotAsImages({ files, model }: { files: File[]; model: Model }) {
  const pictures = files.filter(isPicture);
  const others = model.images ? pictures.filter((f) => !isImage(f)) : []; // of types that models do not read, or damaged
  const unseen = pictures.length - others.length - (model.images ? asImages(files).length : 0);
  const names = others.map((f) => f.name).join(", ");
  return (
    <p class="chat-unseen small" role="status">
      {[
        unseen > 0 &&
          (model.images
            ? msg("chat.unseenImages", {
                count: unseen,
                most: imageLimits.count,
                each: size(imageLimits.each),
                all: size(imageLimits.all),
              })
            : msg("chat.readsNoImages", { name: titleOf(model) })),
        names && msg("chat.notReadAsImages", { names }),
      ]
        .filter(Boolean)
        .join(" ")}
    </p>
  );
}

/** Chosen shows the selected skill of a message. */
function Chosen({ name, disabled, onRemove }: { name: string; disabled: boolean; onRemove: () => void }) {
  return (
    <div class="chat-chosen">
      <Icon name="library" size={14} /> {msg("chat.withSkill")} <strong>{name}</strong>
      <Button
        small
        look="quiet"
        icon="close"
        label={msg("chat.noSkill", { name })}
        disabled={disabled}
        onClick={onRemove}
      />
    </div>
  );
}

/** Fitting suggests skills for the text. */
function Fitting({ text, without, onPick }: { text: string; without: readonly string[]; onPick: (n: Named) => void }) {
  const found = useSuggestedSkills(text.startsWith("/") ? "" : text).filter((n) => !without.includes(n.name));
  if (!found.length) return null;
  return (
    <div class="chat-fitting" role="group" aria-label={msg("chat.fitting")}>
      <span class="small muted" aria-hidden="true">
        {msg("chat.fitting")}
      </span>
      {found.map((n) => (
        <button
          key={n.name}
          type="button"
          class="chat-chip"
          title={n.description}
          aria-label={msg("chat.useSkill", { name: n.title })}
          onClick={() => onPick(n)}
        >
          {n.title}
        </button>
      ))}
    </div>
  );
}

/** useEscape stops the running turn when Escape is pressed twice. */
function useEscape(stop?: () => Promise<unknown>): { asked: boolean } {
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    setAsked(false);
    if (!stop) return;
    let last = 0;
    let timer = 0;
    const key = (e: KeyboardEvent) => {
      if (!isKey(e, "stop") || e.defaultPrevented || document.querySelector("dialog[open]")) return;
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
