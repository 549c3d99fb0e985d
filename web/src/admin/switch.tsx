import { useState } from "preact/hooks";
import { useSend } from "../account/send";
import { api, got, Refusal, useAsked, type Schema } from "../api/client";
import { AreaField, Button, done, Problem, Shown, useConfirm } from "../ui";
import { Part } from "../settings/sections";
import { w } from "./words";
import "./admin.css";

type Settings = Schema["SkillSettings"];

/** The switch of the whole hub. */
export function SkillsOfHub() {
  const t = w();
  return <Part title={t.tabs.skills} lead={t.skillsText}><SkillSwitch scope="hub" called="" may /></Part>;
}

/** Whether skills are on, for the hub or a group, and which are allowed. */
export function SkillSwitch({ scope, called, may }: { scope: string; called: string; may: boolean }) {
  const t = w();
  const of = called ? t.ofGroup(called) : t.ofHub;
  const asked = useAsked((signal) => got(api.GET("/api/v1/settings/skills", { params: { query: { scope } }, signal })), [scope]);
  const put = async (settings: Settings) => asked.set(await got(api.PUT("/api/v1/settings/skills", { params: { query: { scope } }, body: settings })));
  return (
    <Shown asked={asked}>
      {(s) => (
        <div class="stack loose">
          <Switch s={s} of={of} may={may} put={put} />
          <Allow key={s.generation} s={s} may={may} put={put} again={asked.again} />
          {!may && <p class="small muted">{t.mayNot}</p>}
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
  const t = w();
  const confirm = useConfirm();
  const turn = async (enabled: boolean) => {
    await put({ ...s, enabled });
    done(enabled ? t.turnedOn : t.turnedOff);
  };
  const off = () =>
    confirm.ask({ title: t.offTitle(of), children: <ul class="admin-will">{t.offWill.map((line) => <li key={line}>{line}</li>)}</ul>, yes: t.switchOff, danger: true, act: () => turn(false) });
  const on = () => confirm.ask({ title: t.switchOn, children: t.onText(of), yes: t.switchOn, act: () => turn(true) });
  return (
    <div class={s.enabled ? "admin-switch" : "admin-switch off"} role="status">
      {confirm.open}
      <div class="grow"><strong>{s.enabled ? t.on : t.off}</strong><p class="muted">{s.enabled ? t.onText(of) : t.offText(of)}</p></div>
      {may && (s.enabled ? <Button look="danger" onClick={off}>{t.switchOff}</Button> : <Button look="primary" onClick={on}>{t.switchOn}</Button>)}
    </div>
  );
}

const lines = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);

function Allow({ s, may, put, again }: Changed & { again: () => Promise<void> }) {
  const t = w();
  const [text, setText] = useState(s.allow.join("\n"));
  const { send, busy, error } = useSend(async () => {
    await put({ ...s, allow: lines(text) });
    done(t.allowSaved);
  });
  const changed = lines(text).join("\n") !== s.allow.join("\n");
  const lost = error instanceof Refusal && error.problem.code === "changed";
  return (
    <form class="stack settings-form" onSubmit={send}>
      {may
        ? <AreaField label={t.allow} hint={`${t.allowText} ${t.allowHint}`} value={text} onText={setText} rows={6} class="mono" />
        : <><h3>{t.allow}</h3>{s.allow.length > 0 && <pre class="note">{s.allow.join("\n")}</pre>}</>}
      <p class="small">{s.allow.length === 0 ? t.allowAll : t.allowSome(s.allow.length)}</p>
      {lost ? <Lost again={again} /> : !!error && <Problem error={error} />}
      {may && <Button type="submit" disabled={!changed} aria-busy={busy || undefined}>{t.save}</Button>}
    </form>
  );
}

/** Said where somebody else changed the same in the meantime: nothing is overwritten. */
export function Lost({ again }: { again: () => Promise<void> }) {
  const t = w();
  return (
    <div class="note warn" role="alert">
      <strong>{t.changed}</strong>{t.changedText}
      <div><Button small icon="again" onClick={() => void again()}>{t.readAgain}</Button></div>
    </div>
  );
}
