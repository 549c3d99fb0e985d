import { Code } from "../content";
import { Icon, type IconName } from "../ui";
import { Fold } from "./fold";
import { useFrom } from "./inforce";
import type { Kept, Line, Loaded, Short, Unloaded } from "./transcript";
import { w } from "./words";

/** A skill that came into force, and what the model got of it. */
export function LoadedLine({ item }: { item: Loaded }) {
  const t = w();
  const l = item.load;
  const from = useFrom()(l.skill);
  return (
    <Fold
      class="quiet"
      line={
        <span class="words">
          <Icon name="library" size={14} /> {t.loaded} <strong>{l.title || l.skill.name}</strong>{from && <> {t.from(from)}</>}, {t.tokens(l.tokens)}
          {l.for ? <>, {t.neededBy(l.for)}</> : l.by === "person" && <>, {t.byHand}</>}
        </span>
      }
    >
      {() => (
        <>
          <dl class="facts">
            {l.version && <><dt>{t.version}</dt><dd>{l.version}</dd></>}
            {!!l.tools?.length && <><dt>{t.tools}</dt><dd>{l.tools.join(", ")}</dd></>}
            <dt>{t.digest}</dt><dd class="mono">{l.digest}</dd>
          </dl>
          <p class="chat-label">{t.instructions}</p>
          <Code text={l.text} height="20rem" wrap label={t.instructions} />
        </>
      )}
    </Fold>
  );
}

/** A skill that is not in force any more. */
export const UnloadedLine = ({ item }: { item: Unloaded }) => <Quiet icon="library">{w().unloaded(item.name, reasonOf(item.reason))}</Quiet>;

/** Why a skill went out of force, in the words of the page where it is one of those that the hub has. */
function reasonOf(reason: string): string {
  const t = w().reasons;
  const [n = ""] = /\d+/.exec(reason) ?? [];
  if (reason === "the person unloaded it") return t.person;
  if (reason === "the agent is done with it") return t.agent;
  if (reason.startsWith("not used for ")) return t.unused(n);
  if (reason.startsWith("the instructions in force are bounded")) return t.budget(n);
  if (reason.startsWith("the conversation was put in short")) return t.short;
  return reason;
}

/** For how long a person wants a skill to stay. */
export function KeptLine({ item }: { item: Kept }) {
  const t = w();
  return <Quiet icon={item.keep === "pinned" ? "pin" : "library"}>{t.stays(item.name, item.keep === "pinned" ? t.good : item.keep === "once" ? t.once : t.whileUsed)}</Quiet>;
}

/** Something about the conversation itself. */
export function AboutLine({ item }: { item: Line }) {
  const t = w();
  if (item.type === "notice") return <div class="note warn chat-notice">{item.text}</div>;
  if (item.type === "resumed") return <Quiet icon="again">{t.resumed}</Quiet>;
  if (item.type === "updated") return <Quiet icon="info">{t.updated(item.text)}</Quiet>;
  return <Fold class="quiet" line={<span class="words"><Icon name="info" size={14} /> {t.toldModel}</span>}>{() => <Code text={item.text} wrap height="16rem" />}</Fold>;
}

/** Where what was said before was put in short. */
export function CompactedLine({ item }: { item: Short }) {
  const t = w();
  return (
    <div class="chat-compacted">
      <Fold class="quiet" line={<span class="words">{t.compacted}</span>}>
        {() => <><p class="chat-label">{t.compactedText}</p><Code text={item.text} language="markdown" wrap height="20rem" /></>}
      </Fold>
    </div>
  );
}

export function Quiet({ icon, children }: { icon: IconName; children: preact.ComponentChildren }) {
  return <p class="chat-quiet"><Icon name={icon} size={14} /> <span>{children}</span></p>;
}
