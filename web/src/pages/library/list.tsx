import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAddress, type Address } from "../../features/skills/skilladdress";
import { msg } from "../../shared/i18n/messages";
import { stored } from "../../shared/i18n/storage";
import { Button, Icon, Problem, Shown } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { Cards } from "./cards";
import { None } from "./emptylist";
import { filtered, narrowed, searched, sorted, sorting, type Known } from "./filter";
import { Chips } from "./filterchips";
import { useDefaults, useHits, useSkillList, useUnused, useUses, type SkillList } from "./queries";
import { Search, Shape, SortBy } from "./searchbar";
import { Table } from "./table";

/** List shows all visible skills with search and filters. */
export function List() {
  const at = useAddress();
  const scope = at.get("in");
  const skills = useSkillList(scope, !!at.get("hidden"));
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
          <SortBy at={at} />
          <Shape at={at} />
        </div>
        <Chips at={at} skills={skills.data?.skills ?? []} />
      </div>
      <Shown asked={skills} waiting={msg("library.waitingList")}>
        {(s) => <Results skills={s} at={at} />}
      </Shown>
    </Page>
  );
}

/** The number of skills that are drawn at once. */
const pageSize = 60;

function Results({ skills, at }: { skills: SkillList; at: Address }) {
  const q = at.get("q").trim();
  const search = useHits(q);
  const uses = useUses();
  const unused = useUnused(!!at.get("unused"));
  const known: Known = { uses, unused: unused.data };
  const found = useMemo(() => {
    const there = searched(skills.skills, q, search.hits, !at.get("in"));
    return sorted(filtered(there, at, known), sorting(at), known);
  }, [skills, q, search.hits, uses.size, unused.data, at.with({})]);
  const [most, setMost] = useState(pageSize);
  useEffect(() => setMost(pageSize), [at.with({})]);
  const marks = { uses, defaults: useDefaults() };
  const shown = found.slice(0, most);
  const table = (at.get("view") || stored("loadout.library.view")) === "table";
  const error = search.error ?? unused.error;
  return (
    <div class="stack">
      <p class="small muted" role="status">
        {counted(found.length, skills, at)}
      </p>
      {error && <Problem error={error} />}
      {!found.length ? (
        <None at={at} empty={!skills.skills.length && !narrowed(at)} />
      ) : (
        <Walk>{table ? <Table skills={shown} marks={marks} at={at} /> : <Cards skills={shown} marks={marks} />}</Walk>
      )}
      {found.length > most && (
        <div class="row">
          <Button onClick={() => setMost(most + 2 * pageSize)}>
            {msg("library.more", { n: Math.min(found.length - most, 2 * pageSize) })}
          </Button>
          <span class="small muted">{msg("library.shown", { n: most, all: found.length })}</span>
        </div>
      )}
    </div>
  );
}

function counted(found: number, skills: SkillList, at: Address): string {
  const all = skills.skills.length;
  const text = narrowed(at) ? msg("library.found", { n: found, count: all }) : msg("library.all", { count: all });
  return skills.more ? `${text} ${msg("library.notAll", { n: all })}` : text;
}

/** Walk moves the focus between skills with the arrow keys. */
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
  return (
    <div ref={ref} onKeyDown={key}>
      {children}
    </div>
  );
}
