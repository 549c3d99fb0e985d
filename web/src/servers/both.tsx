import { useEffect, useState } from "preact/hooks";
import { Editor } from "../content";
import { Tabs } from "../ui";
import type { Config } from "./config";
import { ServerForm } from "./form";
import { w } from "./words";

interface BothProps {
  name: string;
  config: Config;
  onChange: (config: Config) => void;
  secrets: string[];
  error?: string;
}

/** One server as a form and as JSON, which are two views of the same. */
export function FormOrJSON({ name, config, onChange, secrets, error }: BothProps) {
  const t = w();
  const [view, setView] = useState<"form" | "json">("form");
  return (
    <Tabs label={t.views(name)} tabs={[["form", t.form], ["json", "JSON"]]} open={view} onOpen={setView}>
      {view === "form" ? <ServerForm config={config} onChange={onChange} secrets={secrets} error={error} /> : <AsJSON label={t.jsonOf(name)} value={config} onChange={onChange} error={error} />}
    </Tabs>
  );
}

/** An object as JSON: what can be read counts at once, what cannot is said and does not count. */
function AsJSON({ label, value, onChange, error }: { label: string; value: Config; onChange: (value: Config) => void; error?: string }) {
  const t = w();
  const printed = JSON.stringify(value, null, 2);
  const [text, setText] = useState(printed);
  const [wrong, setWrong] = useState<string>();
  useEffect(() => {
    if (!wrong && printed !== reprinted(text)) setText(printed); // it was changed elsewhere
  }, [printed]);
  const put = (to: string) => {
    setText(to);
    try {
      const read: unknown = JSON.parse(to);
      if (typeof read !== "object" || read === null || Array.isArray(read)) throw new Error(t.noObject);
      setWrong(undefined);
      if (JSON.stringify(read) !== JSON.stringify(value)) onChange(read as Config);
    } catch (failure) {
      setWrong((failure as Error).message);
    }
  };
  return (
    <div class="stack tight">
      <Editor label={label} language="json" value={text} onChange={put} height="16rem" />
      {wrong && <p class="servers-wrong" role="alert">{t.unreadable(wrong)}</p>}
      {error && <p class="servers-wrong" role="alert">{error}</p>}
    </div>
  );
}

function reprinted(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return "";
  }
}
