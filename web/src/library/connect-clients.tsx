import type { Schema } from "../api/client";
import { ways } from "../api/me";
import { Code } from "../content";
import { Tabs } from "../ui";
import { useAddress } from "./address";
import { addLine, clients } from "./clients";
import { d } from "./words-detail";

/** What to paste into which program, so that it has this skill. */
export function Clients({ skill }: { skill: Schema["SkillDetail"] }) {
  const at = useAddress();
  const open = clients.find((c) => c.id === at.get("client")) ?? clients[0]!;
  const token = ways.value?.mode === "accounts";
  const t = d();
  return (
    <>
      <Tabs label={t.clients} tabs={clients.map((c) => [c.id, c.name === "JSON" ? t.otherClient : c.name])} open={open.id} onOpen={(id) => at.go({ client: id })}>
        <div class="stack">
          <p class="small">{open.file ? t.pasteInto(open.file) : t.clientHints[open.id as keyof typeof t.clientHints]}</p>
          <Code text={open.text({ url: `${location.origin}/mcp`, token })} language={open.language} head label={open.name} />
          {open.id === "claude-desktop" && token && <p class="note">{t.desktopToken}</p>}
          {token && <p class="small muted">{open.id === "codex" ? t.tokenVariable : t.tokenHint} <a href="/settings/tokens">{t.makeToken}</a></p>}
          <p class="small muted">{t.thenSay(skill.name)}</p>
        </div>
      </Tabs>
      <div class="stack tight">
        <h3>{t.asFiles}</h3>
        <p class="small muted">{t.asFilesText}</p>
        <Code text={addLine(location.origin, skill.name)} language="shell" head label={t.asFiles} />
        {token && <p class="small muted">{t.addToken(location.hostname)}</p>}
      </div>
    </>
  );
}
