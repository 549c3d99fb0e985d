import { useState } from "preact/hooks";
import { useSend } from "../account/send";
import { api, got, useAsked, type Schema } from "../api/client";
import { AreaField, Button, Check, Dialog, done, Problem, SelectField, Shown } from "../ui";
import { w } from "./words";

type Exception = Schema["DefaultException"];

const kinds = ["mode", "agent", "project"] as const;

/** "mode:plan" a line, as exceptions; what cannot be read is sent as it is, and refused with the reason. */
function exceptionsOf(text: string): Exception[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const at = line.indexOf(":");
    const type = line.slice(0, Math.max(at, 0)).trim();
    return { type: (kinds.find((k) => k === type) ?? type) as Exception["type"], value: line.slice(at + 1).trim() };
  });
}

/** Makes a skill a default, or changes what is said of one. */
export function DefaultForm({ namespace, was, onSet, onClose }: { namespace: string; was?: Schema["Default"]; onSet: () => void; onClose: () => void }) {
  const t = w();
  const [skill, setSkill] = useState(was?.skill_id ?? "");
  const [preload, setPreload] = useState(was?.forcePreload ?? false);
  const [but, setBut] = useState(was?.exceptions.map((e) => `${e.type}:${e.value}`).join("\n") ?? "");
  const { send, busy, error } = useSend(async () => {
    await got(api.PUT("/api/v1/defaults/{skill}", { params: { path: { skill }, query: { namespace: was?.namespace ?? (namespace || undefined) } }, body: { forcePreload: preload, exceptions: exceptionsOf(but) } }));
    done(t.defaultSet);
    onSet();
    onClose();
  });
  return (
    <Dialog title={was?.name ?? t.addDefault} onClose={onClose} actions={<><Button onClick={onClose}>{t.back}</Button><Button type="submit" form="set-default" look="primary" disabled={!skill} aria-busy={busy || undefined}>{t.save}</Button></>}>
      <form id="set-default" class="stack" onSubmit={send}>
        {!was && <SkillChoice value={skill} onChoose={setSkill} />}
        <Check label={t.preload} hint={t.preloadHint} checked={preload} onCheck={setPreload} />
        <AreaField label={t.exceptions} hint={t.exceptionsHint} value={but} onText={setBut} rows={3} class="mono" />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

function SkillChoice({ value, onChoose }: { value: string; onChoose: (id: string) => void }) {
  const t = w();
  const asked = useAsked((signal) => got(api.GET("/api/v1/skills", { params: { query: { limit: 500 } }, signal })), []);
  return (
    <Shown asked={asked}>
      {({ items }) => items.length === 0
        ? <p class="muted">{t.nothing} <a href="/library">{t.look}</a></p>
        : <SelectField label={t.skill} value={value} onText={onChoose} options={[["", t.choose], ...items.map((s): [string, string] => [s.id, s.displayName ? `${s.name} · ${s.displayName}` : s.name])]} />}
    </Shown>
  );
}
