import { useEffect, useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button, failed, Waiting } from "../../shared/ui";
import type { Work } from "./draftstate";
import { parts, type FieldID, type Value } from "./fields";
import { skillFile } from "./files";
import { FormField } from "./formfield";
import { otherFields, read, valueOf, type Front, type Read, type Yaml } from "./frontmatter";
import { setField } from "./frontmatteredit";
import { listed } from "./phrases";
import { templates } from "./templates";

/**
 * FieldsPane edits the fields of SKILL.md in a form. A change replaces only the lines of its field
 * in the text.
 */
export function FieldsPane({ work }: { work: Work }) {
  const yaml = useYaml();
  if (!work.files.some((f) => f.path === skillFile && f.text !== undefined)) return <NoSkillFile work={work} />;
  if (!yaml) return <Waiting />;
  return <Form work={work} yaml={yaml} />;
}

/** useYaml loads the YAML library, which is large. */
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
      {msg("compose.noSkillFile")}
      <div>
        <Button small icon="plus" onClick={() => work.write(skillFile, templates.instructions!()[0]!.text!)}>
          {msg("compose.addSkillFile")}
        </Button>
      </div>
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
  const part = (ids: FieldID[]) =>
    ids.map((id) => <FormField key={id} id={id} value={get(id)} put={(v) => put(id, v)} yaml={yaml} off={stale} />);
  const rest = front ? otherFields(yaml, front) : [];
  const [more] = useState(() => parts.more.some((id) => get(id).toString() !== ""));
  return (
    <div class="stack loose">
      <State read={now} />
      <fieldset class="stack">
        <legend>{msg("compose.about")}</legend>
        {part(parts.about)}
      </fieldset>
      <fieldset class="stack">
        <legend>{msg("compose.how")}</legend>
        {part(parts.use)}
      </fieldset>
      <fieldset class="stack">
        <legend>{msg("compose.needs")}</legend>
        {part(parts.needs)}
      </fieldset>
      <details class="compose-more" open={more}>
        <summary>{msg("compose.moreFields")}</summary>
        <div class="stack">{part(parts.more)}</div>
      </details>
      {rest.length > 0 && <p class="small muted">{msg("compose.otherFields", { list: listed(rest) })}</p>}
    </div>
  );
}

const empty = (id: FieldID): Value =>
  (
    ({
      userInvocable: true,
      disableModelInvocation: false,
      preload: false,
      tags: [],
      allowedTools: [],
      dependencies: [],
      bindShells: [],
    }) as Partial<Record<FieldID, Value>>
  )[id] ?? "";

/** State explains why the form is disabled, if the text is invalid. */
function State({ read: now }: { read: Read }) {
  if ("front" in now) return null;
  if (now.fault === "none") return <p class="small muted">{msg("compose.formNone")}</p>;
  const say =
    now.fault === "unclosed"
      ? msg("compose.formUnclosed")
      : msg("compose.formInvalid", {
          line: now.line ?? 1,
          why: now.message ? now.message.replace(/\.?$/, ".") : msg("compose.invalidShape"),
        });
  return (
    <div class="note warn" role="status">
      <strong>{msg("compose.formStale")}</strong>
      <span>{say}</span>
    </div>
  );
}
