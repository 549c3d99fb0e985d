import { useEffect, useState } from "preact/hooks";
import { Editor } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { Tabs } from "../../shared/ui";
import type { Config } from "./config";
import { ServerForm } from "./form";

interface BothProps {
  name: string;
  config: Config;
  onChange: (config: Config) => void;
  secrets: string[];
  error?: string;
}

/** FormOrJSON edits a server as a form or as JSON. */
export function FormOrJSON({ name, config, onChange, secrets, error }: BothProps) {
  const [view, setView] = useState<"form" | "json">("form");
  return (
    <Tabs
      label={msg("servers.views", { name })}
      tabs={[
        ["form", msg("servers.form")],
        ["json", "JSON"],
      ]}
      open={view}
      onOpen={setView}
    >
      {view === "form" ? (
        <ServerForm config={config} onChange={onChange} secrets={secrets} error={error} />
      ) : (
        <AsJSON label={msg("servers.jsonOf", { name })} value={config} onChange={onChange} error={error} />
      )}
    </Tabs>
  );
}

/** AsJSON edits an object as JSON. Invalid text is reported and not applied. */
function AsJSON({
  label,
  value,
  onChange,
  error,
}: {
  label: string;
  value: Config;
  onChange: (value: Config) => void;
  error?: string;
}) {
  const printed = JSON.stringify(value, null, 2);
  const [text, setText] = useState(printed);
  const [wrong, setWrong] = useState<string>();
  useEffect(() => {
    if (!wrong && printed !== reprinted(text)) setText(printed); // changed elsewhere
  }, [printed]);
  const put = (to: string) => {
    setText(to);
    try {
      const read: unknown = JSON.parse(to);
      if (typeof read !== "object" || read === null || Array.isArray(read)) throw new Error(msg("servers.noObject"));
      setWrong(undefined);
      if (JSON.stringify(read) !== JSON.stringify(value)) onChange(read as Config);
    } catch (failure) {
      setWrong((failure as Error).message);
    }
  };
  return (
    <div class="stack tight">
      <Editor label={label} language="json" value={text} onChange={put} height="16rem" />
      {wrong && (
        <p class="servers-wrong" role="alert">
          {msg("servers.unreadable", { why: wrong })}
        </p>
      )}
      {error && (
        <p class="servers-wrong" role="alert">
          {error}
        </p>
      )}
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
