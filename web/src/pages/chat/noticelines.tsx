import { Code } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { translateProblem } from "../../shared/servertext";
import { Icon, type IconName } from "../../shared/ui";
import { useOriginName } from "./activeskills";
import { Fold } from "./disclosure";
import { unloaded } from "./phrases";
import type { RetentionChange, Line, Loaded, Short, Unloaded } from "./transcript";

/** LoadedLine shows a loaded skill and its instructions. */
export function LoadedLine({ item }: { item: Loaded }) {
  const l = item.load;
  const from = useOriginName()(l.skill);
  return (
    <Fold
      class="quiet"
      line={
        <span class="words">
          <Icon name="library" size={14} /> {msg("chat.loaded")} <strong>{l.title || l.skill.name}</strong>
          {from && <> {msg("chat.from", { origin: from })}</>}, {msg("chat.tokens", { count: l.tokens })}
          {l.for ? <>, {msg("chat.neededBy", { name: l.for })}</> : l.by === "person" && <>, {msg("chat.byHand")}</>}
        </span>
      }
    >
      {() => (
        <>
          <dl class="facts">
            {l.version && (
              <>
                <dt>{msg("chat.version")}</dt>
                <dd>{l.version}</dd>
              </>
            )}
            {!!l.tools?.length && (
              <>
                <dt>{msg("chat.tools")}</dt>
                <dd>{l.tools.join(", ")}</dd>
              </>
            )}
            <dt>{msg("chat.digest")}</dt>
            <dd class="mono">{l.digest}</dd>
          </dl>
          <p class="chat-label">{msg("chat.instructions")}</p>
          <Code text={l.text} height="20rem" wrap label={msg("chat.instructions")} />
        </>
      )}
    </Fold>
  );
}

/** UnloadedLine shows an unloaded skill. */
export const UnloadedLine = ({ item }: { item: Unloaded }) => (
  <Quiet icon="library">{unloaded(item.name, reasonOf(item.reason))}</Quiet>
);

/** reasonOf translates the reason of an unload, if it is known. */
function reasonOf(reason: string): string {
  const [n = ""] = /\d+/.exec(reason) ?? [];
  if (reason === "the person unloaded it") return msg("chat.reasons.person");
  if (reason === "the agent is done with it") return msg("chat.reasons.agent");
  if (reason.startsWith("not used for ")) return msg("chat.reasons.unused", { turns: n });
  if (reason.startsWith("the instructions in force are bounded")) return msg("chat.reasons.budget", { n });
  if (reason.startsWith("the conversation was compacted") || reason.startsWith("the conversation was put in short"))
    return msg("chat.reasons.short");
  return reason;
}

/** RetentionLine says how long the user wants a skill to stay. */
export function RetentionLine({ item }: { item: RetentionChange }) {
  return (
    <Quiet icon={item.keep === "pinned" ? "pin" : "library"}>
      {msg("chat.stays", {
        name: item.name,
        how:
          item.keep === "pinned" ? msg("chat.good") : item.keep === "once" ? msg("chat.once") : msg("chat.whileUsed"),
      })}
    </Quiet>
  );
}

/** AboutLine shows an event of the conversation itself. */
export function AboutLine({ item }: { item: Line }) {
  if (item.type === "notice") return <div class="note warn chat-notice">{noticeText(item)}</div>;
  if (item.type === "resumed") return <Quiet icon="again">{msg("chat.resumed")}</Quiet>;
  if (item.type === "restored") return <Quiet icon="info">{msg("chat.restored", { name: item.text })}</Quiet>;
  if (item.type === "updated") return <Quiet icon="info">{msg("chat.updated", { name: item.text })}</Quiet>;
  return (
    <Fold
      class="quiet"
      line={
        <span class="words">
          <Icon name="info" size={14} /> {msg("chat.toldModel")}
        </span>
      }
    >
      {() => <Code text={item.text} wrap height="16rem" />}
    </Fold>
  );
}

const noticeText = ({ code, text }: Line) => (code ? translateProblem({ code, detail: text }).detail : text);

/** CompactedLine marks where the conversation was compacted. */
export function CompactedLine({ item }: { item: Short }) {
  return (
    <div class="chat-compacted">
      <Fold class="quiet" line={<span class="words">{msg("chat.compacted")}</span>}>
        {() => (
          <>
            <p class="chat-label">{msg("chat.compactedText")}</p>
            <Code text={item.text} language="markdown" wrap height="20rem" />
          </>
        )}
      </Fold>
    </div>
  );
}

export function Quiet({ icon, children }: { icon: IconName; children: preact.ComponentChildren }) {
  return (
    <p class="chat-quiet">
      <Icon name={icon} size={14} /> <span>{children}</span>
    </p>
  );
}
