import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useAddress, type Address } from "../../features/skills/skilladdress";
import { msg } from "../../shared/i18n/messages";
import { stored } from "../../shared/i18n/storage";
import { Button, failed, Icon, Shown } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { Cards } from "./cards";
import { None } from "./emptylist";
import { hasFilterOrQuery } from "./filter";
import { Chips } from "./filterchips";
import { pageSize, useDefaults, useSkillList, type SkillList } from "./queries";
import { Search, Shape, SortBy } from "./searchbar";
import { Start } from "./start";
import { Table } from "./table";

/** List shows all visible skills with search and filters. */
export function List() {
  const at = useAddress();
  const skills = useSkillList(at);
  const actions = (
    <>
      <a class="button" href="/compose">
        <Icon name="compose" />
        {msg("library.compose")}
      </a>
      <a class="button primary" href="/library/add">
        <Icon name="plus" />
        {msg("library.add")}
      </a>
    </>
  );
  return (
    <Page title={msg("library.library")} lead={msg("library.lead")} actions={actions}>
      <div class="stack">
        <div class="row">
          <Search at={at} />
          <SortBy at={at} start={!!skills.data?.sections} />
          {!skills.data?.sections && <Shape at={at} />}
        </div>
        <Chips at={at} facets={skills.data?.facets} />
      </div>
      <Shown asked={skills} waiting={msg("library.waitingList")}>
        {(s) => <Results skills={s} more={skills.more} at={at} />}
      </Shown>
    </Page>
  );
}

function Results({ skills, more, at }: { skills: SkillList; more: () => Promise<void>; at: Address }) {
  const defaults = useDefaults();
  const [busy, setBusy] = useState(false);
  const table = (at.get("view") || stored("loadout.library.view")) === "table";
  const left = skills.total - skills.skills.length;
  const loaded = useRef(0); // the number of skills before the next page
  const status = useFocusAfter(!skills.sections);
  useEffect(() => {
    if (loaded.current) focusSkill(loaded.current);
    loaded.current = 0;
  }, [skills.skills.length]);
  const showMore = () => {
    setBusy(true);
    loaded.current = skills.skills.length;
    more()
      .catch(failed)
      .finally(() => setBusy(false));
  };
  return (
    <div class="stack">
      <p class="row small muted">
        <span role="status" tabIndex={-1} ref={status}>
          {hasFilterOrQuery(at)
            ? msg("library.found", { n: skills.total, count: skills.facets.total })
            : msg("library.all", { count: skills.total })}
        </span>
        {skills.sections && <a href={at.with({ sort: "name" })}>{msg("library.showAll")}</a>}
      </p>
      {skills.sections ? (
        <Walk>
          <Start skills={skills} defaults={defaults} at={at} />
        </Walk>
      ) : !skills.total ? (
        <None at={at} empty={!hasFilterOrQuery(at)} />
      ) : (
        <Walk>
          {table ? (
            <Table skills={skills.skills} defaults={defaults} at={at} />
          ) : (
            <Cards skills={skills.skills} defaults={defaults} />
          )}
        </Walk>
      )}
      {skills.next && (
        <div class="row">
          <Button onClick={showMore} disabled={busy}>
            {msg("library.more", { n: Math.min(left, 2 * pageSize) })}
          </Button>
          <span class="small muted">{msg("library.shown", { n: skills.skills.length, all: skills.total })}</span>
        </div>
      )}
    </div>
  );
}

/** focusSkill moves the focus to a skill by its position. */
const focusSkill = (n: number) =>
  document.querySelectorAll<HTMLElement>("a.library-open")[n]?.focus({ preventScroll: true });

/** useFocusAfter returns the element that gets the focus if the change of a value removed the focused one. */
function useFocusAfter(value: unknown) {
  const ref = useRef<HTMLSpanElement>(null);
  const before = useRef(value);
  useLayoutEffect(() => {
    if (before.current !== value && document.activeElement === document.body)
      ref.current?.focus({ preventScroll: true });
    before.current = value;
  }, [value]);
  return ref;
}

/** Walk moves the focus between the visible skills with the arrow keys. */
function Walk({ children }: { children: preact.ComponentChildren }) {
  const ref = useRef<HTMLDivElement>(null);
  const key = (e: KeyboardEvent) => {
    const all = ref.current?.querySelectorAll<HTMLElement>("a.library-open") ?? [];
    const links = [...all].filter((a) => a.checkVisibility());
    const at = links.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1 }[e.key];
    if (at < 0 || to === undefined || !links[to]) return;
    e.preventDefault();
    links[to].focus();
  };
  return (
    <div ref={ref} onKeyDown={key}>
      {children}
    </div>
  );
}
