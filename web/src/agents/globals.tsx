import { StandingTag, href, type Server } from "../servers/state";
import { Check, Tag } from "../ui";
import { w } from "./words";

/** Which of the servers that are there for everybody an agent uses: all, or some by name. */
export function GlobalServers({ all, names, onChange }: { all: Server[]; names: string[]; onChange: (names: string[]) => void }) {
  const t = w();
  const global = all.filter((s) => !s.kind || s.kind === "MCPServer");
  const gone = names.filter((n) => !global.some((s) => s.name === n));
  const rows = [...new Map(global.map((s) => [s.name, s])).values()];
  const set = (name: string, on: boolean) => onChange(on ? [...names, name] : names.filter((n) => n !== name));
  return (
    <fieldset class="agents-choice">
      <legend>{t.globalServers}</legend>
      <p class="small muted">{rows.length || gone.length ? (names.length ? t.someGlobal : t.allGlobal) : t.noGlobal}</p>
      {rows.map((s) => <Check key={s.name} checked={names.includes(s.name)} onCheck={(on) => set(s.name, on)} label={<span class="row"><a href={href(s)}>{s.name}</a><StandingTag server={s} /></span>} />)}
      {gone.map((n) => <Check key={n} checked onCheck={() => set(n, false)} label={<span class="row">{n}<Tag look="bad">{t.missing}</Tag></span>} />)}
    </fieldset>
  );
}
