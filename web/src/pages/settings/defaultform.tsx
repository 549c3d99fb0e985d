import { useState } from "preact/hooks";
import { useSend } from "../../features/users/form";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { AreaField, Button, Check, Dialog, done, Problem, Shown, TextField } from "../../shared/ui";

type Exception = Schema["DefaultException"];

const kinds = ["mode", "agent", "project"] as const;

/**
 * exceptionsOf parses one exception per line, such as mode:plan. Invalid lines are sent as they
 * are, so that the hub explains them.
 */
function exceptionsOf(text: string): Exception[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean)
    .map((line) => {
      const at = line.indexOf(":");
      const type = line.slice(0, Math.max(at, 0)).trim();
      return { type: (kinds.find((k) => k === type) ?? type) as Exception["type"], value: line.slice(at + 1).trim() };
    });
}

/** DefaultForm adds or changes a default skill. */
export function DefaultForm({
  namespace,
  was,
  taken,
  onSet,
  onClose,
}: {
  namespace: string;
  was?: Schema["Default"];
  /** The IDs of the skills that are defaults already. */
  taken: string[];
  onSet: () => void;
  onClose: () => void;
}) {
  const [skill, setSkill] = useState(was?.skill_id ?? "");
  const [preload, setPreload] = useState(was?.forcePreload ?? false);
  const [but, setBut] = useState(was?.exceptions.map((e) => `${e.type}:${e.value}`).join("\n") ?? "");
  const { send, busy, error } = useSend(async () => {
    await got(
      api.PUT("/api/v1/defaults/{skill}", {
        params: { path: { skill }, query: { namespace: was?.namespace ?? (namespace || undefined) } },
        body: { forcePreload: preload, exceptions: exceptionsOf(but) },
      }),
    );
    done(msg("settings.defaultSet"));
    onSet();
    onClose();
  });
  return (
    <Dialog
      title={was?.name ?? msg("settings.addDefault")}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("settings.back")}</Button>
          <Button type="submit" form="set-default" look="primary" disabled={!skill} aria-busy={busy || undefined}>
            {msg("settings.save")}
          </Button>
        </>
      }
    >
      <form id="set-default" class="stack" onSubmit={send}>
        {!was && <SkillChoice value={skill} taken={taken} onChoose={setSkill} />}
        <Check
          label={msg("settings.preload")}
          hint={msg("settings.preloadHint")}
          checked={preload}
          onCheck={setPreload}
        />
        <AreaField
          label={msg("settings.exceptions")}
          hint={msg("settings.exceptionsHint")}
          value={but}
          onText={setBut}
          rows={3}
          class="mono"
        />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

const most = 8;

/** SkillChoice finds a skill that is no default yet. */
function SkillChoice({ value, taken, onChoose }: { value: string; taken: string[]; onChoose: (id: string) => void }) {
  const [q, setQ] = useState("");
  const load = useLoad(
    async (signal) => {
      const query = { q: q.trim() || undefined, limit: Math.min(most + taken.length, 500) };
      const { items } = await got(api.GET("/api/v1/skills", { params: { query }, signal }));
      return items.filter((s) => !taken.includes(s.id)).slice(0, most);
    },
    [q],
  );
  return (
    <>
      <TextField label={msg("settings.findSkill")} type="search" value={q} onText={setQ} autofocus />
      <Shown asked={load}>
        {(found) =>
          found.length === 0 ? (
            <p class="muted">
              {msg("settings.nothing")} <a href="/library">{msg("settings.look")}</a>
            </p>
          ) : (
            <fieldset class="settings-choices column">
              <legend>{msg("settings.skill")}</legend>
              {found.map((s) => (
                <label key={s.id}>
                  <input type="radio" name="skill" checked={value === s.id} onChange={() => onChoose(s.id)} />
                  <span class="truncate">
                    {s.displayName ? `${s.name} · ${s.displayName}` : s.name}{" "}
                    <span class="small muted">{s.description}</span>
                  </span>
                </label>
              ))}
            </fieldset>
          )
        }
      </Shown>
    </>
  );
}
