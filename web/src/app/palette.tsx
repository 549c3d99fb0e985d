import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { type Command, overlay, shownCommands } from "../features/shortcuts/commands";
import { isKey, keyText } from "../features/shortcuts/keys";
import { api, got, type Schema, useLoad, usePages } from "../shared/api/client";
import { showHiddenCharacters } from "../shared/content/visibletext";
import { chooseLanguage, languageName } from "../shared/i18n/choice";
import { ago } from "../shared/i18n/format";
import { language } from "../shared/i18n/language";
import { languages, msg } from "../shared/i18n/messages";
import { ActionButton, Button, failed, Icon, type IconName, useModal } from "../shared/ui";
import { useListKeys } from "../shared/ui/listkeys";
import { choose, dark } from "../shared/ui/theme";
import { navItems } from "./navitems";
import "./palette.css";

type Found = Schema["SessionFound"];

/** A message that a search found, with the text that was searched for. */
type Hit = Found & { of: string };

/** What can be opened or run. */
interface Entry {
  key: string;
  group: string;
  icon: IconName;
  text: string;
  /** What is shown at the end of the line. */
  note?: string;
  keys?: string;
  excerpt?: Found["excerpt"];
  run: () => void;
}

/** noteOf says how old something in a conversation is, and whether the conversation is archived. */
const noteOf = ({ archived }: { archived?: boolean }, time: string) =>
  archived ? `${msg("palette.archived")} · ${ago(time)}` : ago(time);

const recent = 5;
const pause = 250; // before the hub is asked, in milliseconds

/** Palette finds conversations by their title and text, and commands. */
export default function Palette() {
  const [text, setText] = useState("");
  const modal = useModal(() => (overlay.value = undefined));
  const chosen = useRef<() => void>(undefined);
  useEffect(() => () => void (chosen.current && setTimeout(chosen.current)), []); // after the focus has returned to the page
  const query = text.trim();
  const titles = useLoad(
    (signal) => got(api.GET("/api/v1/sessions", { params: { query: { limit: 100 } }, signal })),
    [],
  );
  const search = useSearch(query);
  const commands = useCommandEntries();
  const open = useOpen();
  const entries = useMemo(() => {
    const byTitle = (titles.data?.items ?? []).filter((s) => fits(s.title, query)).slice(0, query ? 8 : recent);
    const chats = byTitle.map((s): Entry => ({
      key: s.id,
      group: msg("palette.conversations"),
      icon: "chat",
      text: s.title || msg("chat.untitled"),
      note: noteOf(s, s.created),
      run: () => open(s.id),
    }));
    const hits = search.found
      .filter((f) => f.seq || !byTitle.some((s) => s.id === f.id))
      .map((f): Entry => ({
        key: `${f.id} ${f.seq ?? 0}`,
        group: msg("palette.inMessages"),
        icon: "chat",
        text: f.title || msg("chat.untitled"),
        note: noteOf(f, f.time ?? f.created),
        excerpt: f.excerpt,
        run: () => open(f.id, f.seq),
      }));
    const first = commands.filter((c, i) => (query ? startsWith(c.text, query) : i === 0));
    // What the hub finds comes later, so it is shown below.
    return [...first, ...chats, ...commands.filter((c) => !first.includes(c) && fits(c.text, query)), ...hits];
  }, [titles.data, search.found, query, commands]);
  const groups = useMemo(() => grouped(entries), [entries]);
  const sorted = groups.flatMap((g) => g.entries);
  const pick = (at: number) => {
    chosen.current = sorted[at]?.run;
    overlay.value = undefined;
  };
  const keys = useListKeys(
    sorted.length,
    pick,
    query,
    sorted.map((e) => e.key),
  );
  useEffect(() => {
    document.getElementById(keys.active ?? "")?.scrollIntoView({ block: "nearest" });
  }, [keys.active]);
  const close = (e: KeyboardEvent) => {
    if (!isKey(e, "palette")) return;
    e.preventDefault();
    overlay.value = undefined;
  };
  return (
    <dialog {...modal} class="dialog palette" aria-label={msg("palette.title")} onKeyDown={close}>
      <div class="palette-field">
        <Icon name="search" />
        <input
          class="input"
          role="combobox"
          aria-expanded={true}
          aria-controls={keys.list}
          aria-autocomplete="list"
          aria-activedescendant={keys.active}
          aria-label={msg("palette.title")}
          placeholder={msg("palette.placeholder")}
          autocomplete="off"
          spellcheck={false}
          maxLength={200}
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={keys.key}
        />
        <kbd aria-hidden="true">Esc</kbd>
        <Button look="quiet" small icon="close" label={msg("ui.close")} onClick={() => (overlay.value = undefined)} />
      </div>
      <div class="palette-list" role="listbox" id={keys.list} aria-label={msg("palette.results")} tabIndex={-1}>
        {groups.map(({ group, from, entries }) => (
          <div key={group} role="group" aria-label={group}>
            <p class="place" aria-hidden="true">
              {group}
            </p>
            {entries.map((e, i) => (
              <Option key={e.key} entry={e} props={keys.option(from + i)} />
            ))}
          </div>
        ))}
      </div>
      <div class="small muted palette-state">
        <span role="status">
          {search.busy
            ? msg("palette.searching")
            : search.error
              ? msg("palette.failed", { reason: search.error.message })
              : titles.error
                ? msg("palette.failed", { reason: titles.error.message })
                : sorted.length
                  ? msg("palette.count", { count: sorted.length })
                  : msg("palette.none")}
        </span>
        {(search.error ?? titles.error) && !search.busy ? (
          <ActionButton small look="quiet" act={() => (search.error ? search.again() : titles.again())}>
            {msg("ui.again")}
          </ActionButton>
        ) : (
          search.more &&
          !search.busy && (
            <ActionButton small look="quiet" act={search.more}>
              {msg("palette.more")}
            </ActionButton>
          )
        )}
      </div>
    </dialog>
  );
}

function Option({ entry: e, props }: { entry: Entry; props: ReturnType<ReturnType<typeof useListKeys>["option"]> }) {
  return (
    <div class="option" {...props}>
      <Icon name={e.icon} size={16} />
      <span class="grow">
        <span class="row keep">
          <span class="truncate grow">{showHiddenCharacters(e.text)}</span>
          {e.note && <span class="small muted nowrap">{e.note}</span>}
          {e.keys && <kbd aria-hidden="true">{e.keys}</kbd>}
        </span>
        {e.excerpt && <Excerpt parts={e.excerpt} />}
      </span>
    </div>
  );
}

function Excerpt({ parts }: { parts: NonNullable<Found["excerpt"]> }) {
  return (
    <span class="small muted palette-excerpt">
      {parts.map((p, i) =>
        p.match ? (
          <mark key={i}>{showHiddenCharacters(p.text)}</mark>
        ) : (
          <span key={i}>{showHiddenCharacters(p.text)}</span>
        ),
      )}
    </span>
  );
}

/** fits reports whether a text contains all words of a query. */
function fits(text: string, query: string): boolean {
  const low = text.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => low.includes(word));
}

const startsWith = (text: string, query: string) => text.toLowerCase().startsWith(query.toLowerCase());

/** grouped groups entries, in the order of the first one of each group. */
function grouped(entries: Entry[]) {
  const out: { group: string; from: number; entries: Entry[] }[] = [];
  for (const group of new Set(entries.map((e) => e.group)))
    out.push({
      group,
      from: (out.at(-1)?.from ?? 0) + (out.at(-1)?.entries.length ?? 0),
      entries: entries.filter((e) => e.group === group),
    });
  return out;
}

/** useOpen opens a conversation, at a message if its step is given. */
function useOpen() {
  const { route } = useLocation();
  return (id: string, step?: number) => route(`/chat/${id}${step ? `?step=${step}` : ""}`);
}

/** useSearch searches the text of conversations on the hub after a short pause. */
function useSearch(query: string) {
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(query), query ? pause : 0);
    return () => clearTimeout(timer);
  }, [query]);
  const load = usePages<Hit>(
    async (after, signal) => {
      if (!asked) return { items: [], next: undefined };
      const page = await got(api.GET("/api/v1/sessions/search", { params: { query: { q: asked, after } }, signal }));
      return { ...page, items: page.items.map((f) => ({ ...f, of: asked })) };
    },
    [asked],
  );
  // Until the response arrives, and after a failure, the data are those of the query before.
  const found = useMemo(() => (load.data ?? none).filter((f) => f.of === query), [load.data, query]);
  return {
    found,
    busy: query !== asked || (!!asked && load.busy),
    error: load.error,
    more: load.more,
    again: load.again,
  };
}

const none: Hit[] = [];

/** useCommandEntries returns the commands of the page and of what it shows. */
function useCommandEntries(): Entry[] {
  const { route } = useLocation();
  const here = shownCommands.value;
  return useMemo(() => {
    const command = (c: Command, group: string, keys?: string): Entry => ({
      key: `${group} ${c.text}`,
      group,
      icon: c.icon ?? "right",
      text: c.text,
      keys,
      run: c.run,
    });
    const { work, team } = navItems();
    const general: Command[] = [
      {
        text: dark.value ? msg("palette.light") : msg("palette.dark"),
        icon: "sun",
        run: () => choose(dark.value ? "light" : "dark"),
      },
      ...languages
        .filter((code) => code !== language.value)
        .map((code) => ({
          text: msg("palette.language", { name: languageName(code) }),
          icon: "globe" as const,
          run: () => void chooseLanguage(code).catch(failed),
        })),
    ];
    const actions = msg("palette.actions");
    return [
      command({ text: msg("chat.fresh"), icon: "plus", run: () => route("/") }, actions, keyText("fresh")),
      ...here.map((c) => command(c, msg("palette.here"))),
      ...[...work, ...team].map((n) =>
        command({ text: n.text, icon: n.icon, run: () => route(n.href) }, msg("palette.pages")),
      ),
      ...general.map((c) => command(c, actions)),
      command(
        { text: msg("shortcuts.title"), icon: "info", run: () => (overlay.value = "sheet") },
        actions,
        keyText("sheet"),
      ),
    ];
  }, [here, language.value, dark.value]);
}
