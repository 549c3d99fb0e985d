import { useState } from "preact/hooks";
import { api } from "../api/client";
import { Editor } from "../content";
import { ActionButton, Button, Copy, Tabs } from "../ui";
import type { Change } from "./changes";
import { pathOf, sent } from "./document";
import type { PartProps } from "./parts";
import { printJSON, printYAML } from "./print";
import { SavingText } from "./saving";
import { w } from "./words";

type Language = "yaml" | "json";

/** The whole document as YAML or JSON, as `loadout apply` reads it; the hub itself reads what is changed here. */
export function Raw({ draft, place, onSaved }: PartProps & { onSaved: (changes: Change[]) => void }) {
  const t = w();
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
    if (changed) return; // what is written is in one of them
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
      <p class="small muted">{t.rawSays}</p>
      {draft.dirty && <p class="note">{t.rawOfDraft}</p>}
      <Tabs label={t.asText} tabs={[["yaml", "YAML"], ["json", "JSON"]]} open={language} onOpen={choose}>
        <Editor key={language} label={t.documentAs(language.toUpperCase())} language={language} height="30rem" value={text} onChange={(to) => { write(to); setFound([]); }} diagnostics={found} />
      </Tabs>
      <div class="row">
        <Copy text={text} />
        <span class="row push">
          {changed && <Button onClick={() => { write(undefined); setFound([]); }}>{t.discard}</Button>}
          <ActionButton look={changed ? "primary" : ""} disabled={!changed} act={look}>{t.look}</ActionButton>
        </span>
      </div>
      {saving && <SavingText text={text} json={language === "json"} warning={late ? t.changedMeanwhile : undefined} onClose={() => save(false)} onFound={setFound} onSaved={(changes) => { save(false); write(undefined); onSaved(changes); }} />}
    </section>
  );
}
