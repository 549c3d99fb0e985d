import { useState } from "preact/hooks";
import { partsOf, refOf, type Agent } from "../../features/resources/agents";
import { pageOf } from "../../features/resources/document";
import { printYAML } from "../../features/resources/printdocument";
import { msg } from "../../shared/i18n/messages";
import { Copy } from "../../shared/ui";
import { documentsOf, type AgentInput } from "./form";

/** Documents shows the documents that the form writes, with links to their editor. */
export function Documents({ input, saved, all }: { input: AgentInput; saved?: Agent; all: Agent[] }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{msg("agents.showDocuments")}</summary>
      {open && <Texts input={input} saved={saved} all={all} />}
    </details>
  );
}

function Texts({ input, saved, all }: { input: AgentInput; saved?: Agent; all: Agent[] }) {
  const text = documentsOf(input, saved, all)
    .map((d) => printYAML({ ...d, metadata: { ...d.metadata, generation: undefined } }))
    .join("---\n");
  const parts = saved ? partsOf(saved) : [];
  return (
    <div class="stack">
      <p class="small muted">{msg("agents.documentsSay")}</p>
      <pre class="agents-newer" tabIndex={0}>
        {text}
      </pre>
      <div class="row">
        <Copy text={text} />
        {parts.map((t) => (
          <a key={t.kind} class="button small" href={`${pageOf(refOf(t))}?tab=document`}>
            {msg("agents.editDocument", { kind: t.kind })}
          </a>
        ))}
      </div>
    </div>
  );
}
