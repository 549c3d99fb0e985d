import { useState } from "preact/hooks";
import { api } from "../../shared/api/client";
import { Editor } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Copy, Tabs } from "../../shared/ui";
import type { Change } from "./changes";
import { pathOf, sent } from "./document";
import type { PartProps } from "./editorprops";
import { printJSON, printYAML } from "./printdocument";
import { SavingText } from "./save";

type Language = "yaml" | "json";

/** Raw edits the whole document as YAML or JSON. The hub parses the text. */
export function Raw({ draft, place, onSaved }: PartProps & { onSaved: (changes: Change[]) => void }) {
  const [language, setLanguage] = useState<Language>("yaml");
  const [written, write] = useState<string>();
  const [found, setFound] = useState<Change["findings"]>([]);
  const [saving, save] = useState(false);
  const [late, setLate] = useState(false);
  const doc = sent(draft.doc);
  const printed = language === "yaml" ? printYAML(doc) : printJSON(doc).text;
  const text = written ?? printed;
  const changed = written !== undefined && written !== printed;
  const choose = (to: Language) => {
    if (changed) return; // the text is in one of the formats
    write(undefined);
    setLanguage(to);
  };
  const look = async () => {
    const now = place && (await api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(place) })).data;
    setLate(!!now && now.status.generation !== draft.made);
    save(true);
  };
  return (
    <section class="stack">
      <p class="small muted">{msg("agents.rawSays")}</p>
      {draft.dirty && <p class="note">{msg("agents.rawOfDraft")}</p>}
      <Tabs
        label={msg("agents.asText")}
        tabs={[
          ["yaml", "YAML"],
          ["json", "JSON"],
        ]}
        open={language}
        onOpen={choose}
      >
        <Editor
          key={language}
          label={msg("agents.documentAs", { l: language.toUpperCase() })}
          language={language}
          height="30rem"
          value={text}
          onChange={(to) => {
            write(to);
            setFound([]);
          }}
          diagnostics={found}
        />
      </Tabs>
      <div class="row">
        <Copy text={text} />
        <span class="row push">
          {changed && (
            <Button
              onClick={() => {
                write(undefined);
                setFound([]);
              }}
            >
              {msg("agents.discard")}
            </Button>
          )}
          <ActionButton look={changed ? "primary" : ""} disabled={!changed} act={look}>
            {msg("agents.look")}
          </ActionButton>
        </span>
      </div>
      {saving && (
        <SavingText
          text={text}
          json={language === "json"}
          warning={late ? msg("agents.changedMeanwhile") : undefined}
          onClose={() => save(false)}
          onFound={setFound}
          onSaved={(changes) => {
            save(false);
            write(undefined);
            onSaved(changes);
          }}
        />
      )}
    </section>
  );
}
