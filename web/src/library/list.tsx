import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Page } from "../shell/page";
import { Button, Icon, Problem, Shown } from "../ui";
import { stored } from "../words";
import { useAddress, type Address } from "./address";
import { Cards } from "./cards";
import { Chips } from "./chips";
import { None } from "./empty";
import { filtered, narrowed, searched, sorted, sorting, type Known } from "./filter";
import { useDefaults, useHits, useShelf, useUnused, useUses, type Shelf } from "./load";
import { Search, Shape, SortBy } from "./search";
import { Table } from "./table";
import { w } from "./words";

/** All skills that one may see: to find one, and to see at a glance what it is. */
export function List() {
  const at = useAddress();
  const scope = at.get("in");
  const shelf = useShelf(scope, !!at.get("hidden"));
  const actions = (
    <>
      <a class="button" href="/compose"><Icon name="compose" />{w().compose}</a>
      <a class="button primary" href="/library/add"><Icon name="plus" />{w().add}</a>
    </>
  );
  return (
    <Page title={w().library} lead={w().lead} actions={actions}>
      <div class="stack">
        <div class="row">
          <Search at={at} />
          <SortBy at={at} />
          <Shape at={at} />
        </div>
        <Chips at={at} skills={shelf.data?.skills ?? []} />
      </div>
      <Shown asked={shelf} waiting={w().waitingList}>{(s) => <Results shelf={s} at={at} />}</Shown>
    </Page>
  );
}

/** So many are drawn at once. */
const atOnce = 60;

function Results({ shelf, at }: { shelf: Shelf; at: Address }) {
  const q = at.get("q").trim();
  const search = useHits(q);
  const uses = useUses();
  const unused = useUnused(!!at.get("unused"));
  const known: Known = { uses, unused: unused.data };
  const found = useMemo(() => {
    const there = searched(shelf.skills, q, search.hits, !at.get("in"));
    return sorted(filtered(there, at, known), sorting(at), known);
  }, [shelf, q, search.hits, uses.size, unused.data, at.with({})]);
  const [most, setMost] = useState(atOnce);
  useEffect(() => setMost(atOnce), [at.with({})]);
  const marks = { uses, defaults: useDefaults() };
  const shown = found.slice(0, most);
  const table = (at.get("view") || stored("loadout.library.view")) === "table";
  const error = search.error ?? unused.error;
  return (
    <div class="stack">
      <p class="small muted" role="status">{counted(found.length, shelf, at)}</p>
      {error && <Problem error={error} />}
      {!found.length ? <None at={at} empty={!shelf.skills.length && !narrowed(at)} /> : (
        <Walk>{table ? <Table skills={shown} marks={marks} at={at} /> : <Cards skills={shown} marks={marks} />}</Walk>
      )}
      {found.length > most && <div class="row"><Button onClick={() => setMost(most + 2 * atOnce)}>{w().more(Math.min(found.length - most, 2 * atOnce))}</Button><span class="small muted">{w().shown(most, found.length)}</span></div>}
    </div>
  );
}

function counted(found: number, shelf: Shelf, at: Address): string {
  const all = shelf.skills.length;
  const text = narrowed(at) ? w().found(found, all) : w().all(all);
  return shelf.more ? `${text} ${w().notAll(all)}` : text;
}

/** Arrows go from one skill to the next. */
function Walk({ children }: { children: preact.ComponentChildren }) {
  const ref = useRef<HTMLDivElement>(null);
  const key = (e: KeyboardEvent) => {
    const links = [...(ref.current?.querySelectorAll<HTMLElement>("a.library-open") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1 }[e.key];
    if (at < 0 || to === undefined || !links[to]) return;
    e.preventDefault();
    links[to].focus();
  };
  return <div ref={ref} onKeyDown={key}>{children}</div>;
}
