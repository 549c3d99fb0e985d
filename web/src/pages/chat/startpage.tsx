import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { msg } from "../../shared/i18n/messages";
import { failed } from "../../shared/ui";
import { useTitle } from "../../shared/ui/page";
import { AgentField } from "./agentfield";
import { Composer } from "./composer";
import { changeDraft, type Draft, draftOf, keepDraft } from "./drafts";
import { OwnModel } from "./model";
import { modelFor, useModels } from "./models";
import { createConversation, Begun } from "./send";
import { named, type Skill, useNewestSkills, useSkills } from "./skillsearch";

/**
 * Begin is the page of a new conversation. The address has the agent; `list` opens the list of
 * conversations.
 */
export function Begin({ list }: { list: ComponentChildren }) {
  const { query, route } = useLocation();
  const draft = draftOf("");
  const frozen = !!draft.state;
  const agent = (frozen ? draft.agent : query.agent) ?? "";
  const toAgent = (a: string) => route(a ? `/?agent=${encodeURIComponent(a)}` : "/", true);
  const models = useModels(agent);
  useTitle(msg("chat.fresh"));
  useEffect(() => {
    if (frozen) return; // the address applies to the next message
    changeDraft("", { agent });
    if (!query.skill) return; // with a skill, the user comes from the page of that skill
    changeDraft("", { skill: query.skill });
    toAgent(agent);
  }, [query.skill, agent, frozen]);
  const open = (id: string) => {
    if (location.pathname === "/") route(`/chat/${id}`); // not if the user left while the message waited
  };
  const send = async (draft: Draft) => {
    try {
      open(await createConversation(draft));
    } catch (error) {
      if (!(error instanceof Begun)) throw error;
      keepDraft(error.session, draft); // the conversation exists, and the draft belongs to it
      failed(error.why);
      open(error.session);
    }
  };
  return (
    <section class="chat-talk begin">
      {list && <header class="chat-head">{list}</header>}
      <div class="chat-hello">
        <h1>{msg("chat.hello")}</h1>
        <p class="muted">{msg("chat.helloText")}</p>
        <OwnModel agent={agent} />
        <Examples disabled={frozen} />
      </div>
      <div class="chat-foot-area">
        <AgentField agent={agent} disabled={frozen} onAgent={toAgent} />
        <Composer
          id=""
          send={send}
          busy={false}
          models={models}
          model={modelFor(models, draft.model ?? "") ? draft.model : ""}
          onModel={(model) => changeDraft("", { model })}
        />
      </div>
    </section>
  );
}

/** The example requests for bundled skills. */
const worked = ["csv-analysis", "mermaid-diagrams", "git-commit-review"] as const;

interface Example {
  skill: string;
  title: string;
  text: string;
  description: string;
}

/** examplesFor returns three examples: first for the newest skills of users, then for bundled skills. */
function examplesFor(skills: Skill[], newest: Skill[]): Example[] {
  const isShown = (s: Skill) => !s.hidden;
  const isWorked = (s: Skill) => s.namespace === "bundled";
  const own = newest
    .filter((s) => isShown(s) && !isWorked(s))
    .sort((a, b) => b.updated.localeCompare(a.updated))
    .map(named)
    .map((n) => {
      const text = msg("chat.example", { skill: n.title });
      return { skill: n.name, title: text, text, description: n.description };
    });
  const bundled = worked
    .filter((name) => skills.some((s) => isShown(s) && isWorked(s) && s.name === name))
    .map((name) => ({
      skill: name,
      title: msg(`chat.worked.${name}.title`),
      text: msg(`chat.worked.${name}.text`),
      description: msg("chat.workedWith", { skill: name }),
    }));
  return [...own, ...bundled].slice(0, 3);
}

/** Examples suggests requests for the available skills. The user can edit one before sending it. */
function Examples({ disabled }: { disabled: boolean }) {
  const skills = useSkills();
  const newest = useNewestSkills();
  if (!skills || !newest) return null;
  const shown = examplesFor(skills, newest);
  if (!shown.length)
    return (
      <p>
        {msg("chat.noSkills")} <a href="/library/add">{msg("chat.toLibrary")}</a>
      </p>
    );
  const take = (text: string, skill: string) => {
    changeDraft("", { text, skill });
    document.querySelector<HTMLTextAreaElement>(".chat-input")?.focus();
  };
  return (
    <>
      <h2 class="chat-label">{msg("chat.examples")}</h2>
      <ul class="chat-examples">
        {shown.map((e) => (
          <li key={e.skill}>
            <button type="button" disabled={disabled} onClick={() => take(e.text, e.skill)}>
              <strong>{e.title}</strong>
              <span class="small muted">{e.description}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
