import { useEffect, useRef, useState } from "preact/hooks";
import { Button, failed, Waiting } from "../ui";
import { setField } from "./change";
import { parts, type FieldID, type Value } from "./fields";
import { FormField } from "./formfield";
import { skillFile } from "./files";
import { others, read, valueOf, type Front, type Read, type Yaml } from "./frontmatter";
import { templates } from "./templates";
import { listed, w } from "./words";
import type { Work } from "./work";

/** The fields of SKILL.md as a form. It is a view of the text: what is written here changes the lines of that field alone. */
export function FieldsPane({ work }: { work: Work }) {
  const yaml = useYaml();
  if (!work.files.some((f) => f.path === skillFile && f.text !== undefined)) return <NoSkillFile work={work} />;
  if (!yaml) return <Waiting />;
  return <Form work={work} yaml={yaml} />;
}

/** The library for YAML, which is large: it comes when the form does. */
function useYaml(): Yaml | undefined {
  const [yaml, setYaml] = useState<Yaml>();
  useEffect(() => {
    import("yaml").then((m) => setYaml(m), failed);
  }, []);
  return yaml;
}

function NoSkillFile({ work }: { work: Work }) {
  return (
    <div class="note warn">
      {w().noSkillFile}
      <div><Button small icon="plus" onClick={() => work.write(skillFile, templates.instructions!()[0]!.text!)}>{w().addSkillFile}</Button></div>
    </div>
  );
}

function Form({ work, yaml }: { work: Work; yaml: Yaml }) {
  const now = read(yaml, work.skill);
  const last = useRef<Front>(undefined);
  if ("front" in now) last.current = now.front;
  const front = "front" in now ? now.front : now.fault === "none" ? undefined : last.current;
  const stale = "fault" in now && now.fault !== "none";
  const get = (id: FieldID): Value => (front ? valueOf(yaml, front, id) : empty(id));
  const put = (id: FieldID, value: Value) => work.write(skillFile, setField(yaml, work.skill, id, value));
  const part = (ids: FieldID[]) => ids.map((id) => <FormField key={id} id={id} value={get(id)} put={(v) => put(id, v)} yaml={yaml} off={stale} />);
  const rest = front ? others(yaml, front) : [];
  const [more] = useState(() => parts.more.some((id) => get(id).toString() !== ""));
  return (
    <div class="stack loose">
      <State read={now} />
      <fieldset class="stack"><legend>{w().about}</legend>{part(parts.about)}</fieldset>
      <fieldset class="stack"><legend>{w().how}</legend>{part(parts.use)}</fieldset>
      <fieldset class="stack"><legend>{w().needs}</legend>{part(parts.needs)}</fieldset>
      <details class="compose-more" open={more}>
        <summary>{w().moreFields}</summary>
        <div class="stack">{part(parts.more)}</div>
      </details>
      {rest.length > 0 && <p class="small muted">{w().otherFields(listed(rest))}</p>}
    </div>
  );
}

const empty = (id: FieldID): Value => ({ userInvocable: true, disableModelInvocation: false, preload: false, tags: [], allowedTools: [], dependencies: [], bindShells: [] } as Partial<Record<FieldID, Value>>)[id] ?? "";

/** Why the form waits, where the text cannot be read. */
function State({ read: now }: { read: Read }) {
  if ("front" in now) return null;
  if (now.fault === "none") return <p class="small muted">{w().formNone}</p>;
  const say = now.fault === "unclosed" ? w().formUnclosed : w().formInvalid(now.line ?? 1, now.message ? now.message.replace(/\.?$/, ".") : w().invalidShape);
  return <div class="note warn" role="status"><strong>{w().formStale}</strong><span>{say}</span></div>;
}
