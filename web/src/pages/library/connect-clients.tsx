import { useAddress } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { ways } from "../../shared/api/me";
import { Code } from "../../shared/content";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Tabs } from "../../shared/ui";
import { addLine, clients } from "./clients";

/** Clients shows the configuration for each program. */
export function Clients({ skill }: { skill: Schema["SkillDetail"] }) {
  const at = useAddress();
  const open = clients.find((c) => c.id === at.get("client")) ?? clients[0]!;
  const token = ways.value?.mode === "accounts";

  return (
    <>
      <Tabs
        label={msg("skill.clients")}
        tabs={clients.map((c) => [c.id, c.name === "JSON" ? msg("skill.otherClient") : c.name])}
        open={open.id}
        onOpen={(id) => at.go({ client: id })}
      >
        <div class="stack">
          <p class="small">
            {open.file ? msg("skill.pasteInto", { file: open.file }) : findMsg("skill.clientHints", open.id)}
          </p>
          <Code
            text={open.text({ url: `${location.origin}/mcp`, token })}
            language={open.language}
            head
            label={open.name}
          />
          {open.id === "claude-desktop" && token && <p class="note">{msg("skill.desktopToken")}</p>}
          {token && (
            <p class="small muted">
              {open.id === "codex" ? msg("skill.tokenVariable") : msg("skill.tokenHint")}{" "}
              <a href="/settings/tokens">{msg("skill.makeToken")}</a>
            </p>
          )}
          <p class="small muted">{msg("skill.thenSay", { n: skill.name })}</p>
        </div>
      </Tabs>
      <div class="stack tight">
        <h3>{msg("skill.asFiles")}</h3>
        <p class="small muted">{msg("skill.asFilesText")}</p>
        <Code text={addLine(location.origin, skill.name)} language="shell" head label={msg("skill.asFiles")} />
        {token && <p class="small muted">{msg("skill.addToken", { host: location.hostname })}</p>}
      </div>
    </>
  );
}
