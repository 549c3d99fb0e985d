import { msg } from "../../shared/i18n/messages";
import { Check, Tag } from "../../shared/ui";
import { StandingTag, href, type Server } from "../servers/state";

/** GlobalServers selects the shared servers of an agent: all, or some by name. */
export function GlobalServers({
  all,
  names,
  onChange,
}: {
  all: Server[];
  names: string[];
  onChange: (names: string[]) => void;
}) {
  const global = all.filter((s) => !s.kind || s.kind === "MCPServer");
  const gone = names.filter((n) => !global.some((s) => s.name === n));
  const rows = [...new Map(global.map((s) => [s.name, s])).values()];
  const set = (name: string, on: boolean) => onChange(on ? [...names, name] : names.filter((n) => n !== name));
  return (
    <fieldset class="agents-choice">
      <legend>{msg("agents.globalServers")}</legend>
      <p class="small muted">
        {rows.length || gone.length
          ? names.length
            ? msg("agents.someGlobal")
            : msg("agents.allGlobal")
          : msg("agents.noGlobal")}
      </p>
      {rows.map((s) => (
        <Check
          key={s.name}
          checked={names.includes(s.name)}
          onCheck={(on) => set(s.name, on)}
          label={
            <span class="row">
              <a href={href(s)}>{s.name}</a>
              <StandingTag server={s} />
            </span>
          }
        />
      ))}
      {gone.map((n) => (
        <Check
          key={n}
          checked
          onCheck={() => set(n, false)}
          label={
            <span class="row">
              {n}
              <Tag look="bad">{msg("agents.missing")}</Tag>
            </span>
          }
        />
      ))}
    </fieldset>
  );
}
