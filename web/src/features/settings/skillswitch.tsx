import { useState } from "preact/hooks";
import { api, got, Refusal, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { AreaField, Button, done, Problem, Shown, useConfirm } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import { useSend } from "../users/form";
import { switchOffEffects } from "./phrases";
import "./admin.css";

type Settings = Schema["SkillSettings"];

/** SkillsOfHub shows the skill settings of the whole hub. */
export function SkillsOfHub() {
  return (
    <Part title={msg("admin.tabs.skills")} lead={msg("admin.skillsText")}>
      <SkillSwitch scope="hub" called="" may />
    </Part>
  );
}

/** SkillSwitch switches the skills of the hub or a group on or off, and edits the allowed skills. */
export function SkillSwitch({ scope, called, may }: { scope: string; called: string; may: boolean }) {
  const of = called ? msg("admin.ofGroup", { g: called }) : msg("admin.ofHub");
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/settings/skills", { params: { query: { scope } }, signal })),
    [scope],
  );
  const put = async (settings: Settings) =>
    load.set(await got(api.PUT("/api/v1/settings/skills", { params: { query: { scope } }, body: settings })));
  return (
    <Shown asked={load}>
      {(s) => (
        <div class="stack loose">
          <Switch s={s} of={of} may={may} put={put} />
          <Allow key={s.generation} s={s} may={may} put={put} again={load.again} />
          {!may && <p class="small muted">{msg("admin.mayNot")}</p>}
        </div>
      )}
    </Shown>
  );
}

interface Changed {
  s: Settings;
  may: boolean;
  put: (s: Settings) => Promise<void>;
}

function Switch({ s, of, may, put }: Changed & { of: string }) {
  const confirm = useConfirm();
  const turn = async (enabled: boolean) => {
    await put({ ...s, enabled });
    done(enabled ? msg("admin.turnedOn") : msg("admin.turnedOff"));
  };
  const off = () =>
    confirm.ask({
      title: msg("admin.offTitle", { s: of }),
      children: (
        <ul class="admin-will">
          {switchOffEffects().map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      ),
      yes: msg("admin.switchOff"),
      danger: true,
      act: () => turn(false),
    });
  const on = () =>
    confirm.ask({
      title: msg("admin.switchOn"),
      children: msg("admin.onText", { s: of }),
      yes: msg("admin.switchOn"),
      act: () => turn(true),
    });
  return (
    <div class={s.enabled ? "admin-switch" : "admin-switch off"} role="status">
      {confirm.open}
      <div class="grow">
        <strong>{s.enabled ? msg("admin.on") : msg("admin.off")}</strong>
        <p class="muted">{s.enabled ? msg("admin.onText", { s: of }) : msg("admin.offText", { s: of })}</p>
      </div>
      {may &&
        (s.enabled ? (
          <Button look="danger" onClick={off}>
            {msg("admin.switchOff")}
          </Button>
        ) : (
          <Button look="primary" onClick={on}>
            {msg("admin.switchOn")}
          </Button>
        ))}
    </div>
  );
}

const lines = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

function Allow({ s, may, put, again }: Changed & { again: () => Promise<void> }) {
  const [text, setText] = useState(s.allow.join("\n"));
  const { send, busy, error } = useSend(async () => {
    await put({ ...s, allow: lines(text) });
    done(msg("admin.allowSaved"));
  });
  const changed = lines(text).join("\n") !== s.allow.join("\n");
  const lost = error instanceof Refusal && error.problem.code === "changed";
  return (
    <form class="stack settings-form" onSubmit={send}>
      {may ? (
        <AreaField
          label={msg("admin.allow")}
          hint={`${msg("admin.allowText")} ${msg("admin.allowHint")}`}
          value={text}
          onText={setText}
          rows={6}
          class="mono"
        />
      ) : (
        <>
          <h3>{msg("admin.allow")}</h3>
          {s.allow.length > 0 && <pre class="note">{s.allow.join("\n")}</pre>}
        </>
      )}
      <p class="small">
        {s.allow.length === 0 ? msg("admin.allowAll") : msg("admin.allowSome", { count: s.allow.length })}
      </p>
      {lost ? <SavedByOthers again={again} /> : !!error && <Problem error={error} />}
      {may && (
        <Button type="submit" disabled={!changed} aria-busy={busy || undefined}>
          {msg("admin.save")}
        </Button>
      )}
    </form>
  );
}

/** SavedByOthers says that another user saved a change first. Nothing is overwritten. */
export function SavedByOthers({ again }: { again: () => Promise<void> }) {
  return (
    <div class="note warn" role="alert">
      <strong>{msg("admin.changed")}</strong>
      {msg("admin.changedText")}
      <div>
        <Button small icon="again" onClick={() => void again()}>
          {msg("admin.readAgain")}
        </Button>
      </div>
    </div>
  );
}
