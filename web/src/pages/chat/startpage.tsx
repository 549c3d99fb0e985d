import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { msg } from "../../shared/i18n/messages";
import { failed } from "../../shared/ui";
import { useTitle } from "../../shared/ui/page";
import { AgentField } from "./agentfield";
import { Composer } from "./composer";
import { type Draft, draftOf, empty, keepDraft } from "./drafts";
import { OwnModel } from "./model";
import { begin, Begun } from "./send";
import { named, type Skill, useSkills } from "./skillsearch";

/**
 * Begin is the page of a new conversation. The address has the agent; `list` opens the list of
 * conversations.
 */
export function Begin({ list }: { list: ComponentChildren }) {
  const { query, route } = useLocation();
  const agent = query.agent ?? "";
  useTitle(msg("chat.fresh"));
  useEffect(() => {
    if (!query.skill) return; // with a skill, the user comes from the page of that skill
    keepDraft("", { ...(draftOf("") ?? empty), skill: query.skill });
    route(agent ? `/?agent=${encodeURIComponent(agent)}` : "/", true);
  }, [query.skill]);
  const send = async (draft: Draft) => {
    try {
      const id = await begin(agent, draft);
      if (location.pathname === "/") route(`/chat/${id}`); // not if the user left while the message waited
    } catch (error) {
      if (!(error instanceof Begun)) throw error;
      keepDraft(error.session, draft); // the conversation exists, and the draft belongs to it
      failed(error.why);
      route(`/chat/${error.session}`);
    }
  };
  return (
    <section class="chat-talk begin">
      {list && <header class="chat-head">{list}</header>}
      <div class="chat-hello">
        <h1>{msg("chat.hello")}</h1>
        <p class="muted">{msg("chat.helloText")}</p>
        <OwnModel />
        <Examples />
      </div>
      <div class="chat-foot-area">
        <AgentField agent={agent} onAgent={(a) => route(a ? `/?agent=${encodeURIComponent(a)}` : "/", true)} />
        <Composer id="" send={send} busy={false} />
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
function examplesFor(skills: Skill[]): Example[] {
  const shown = skills.filter((s) => !s.hidden);
  const isWorked = (s: Skill) => s.namespace === "bundled";
  const own = shown
    .filter((s) => !isWorked(s))
    .sort((a, b) => b.updated.localeCompare(a.updated))
    .map(named)
    .map((n) => {
      const text = msg("chat.example", { skill: n.title });
      return { skill: n.name, title: text, text, description: n.description };
    });
  const bundled = worked
    .filter((name) => shown.some((s) => isWorked(s) && s.name === name))
    .map((name) => ({
      skill: name,
      title: msg(`chat.worked.${name}.title`),
      text: msg(`chat.worked.${name}.text`),
      description: msg("chat.workedWith", { skill: name }),
    }));
  return [...own, ...bundled].slice(0, 3);
}

/** Examples suggests requests for the available skills. The user can edit one before sending it. */
function Examples() {
  const skills = useSkills();
  if (!skills) return null;
  const shown = examplesFor(skills);
  if (!shown.length)
    return (
      <p>
        {msg("chat.noSkills")} <a href="/library/add">{msg("chat.toLibrary")}</a>
      </p>
    );
  const take = (text: string, skill: string) => {
    keepDraft("", { ...(draftOf("") ?? empty), text, skill });
    document.querySelector<HTMLTextAreaElement>(".chat-input")?.focus();
  };
  return (
    <>
      <h2 class="chat-label">{msg("chat.examples")}</h2>
      <ul class="chat-examples">
        {shown.map((e) => (
          <li key={e.skill}>
            <button type="button" onClick={() => take(e.text, e.skill)}>
              <strong>{e.title}</strong>
              <span class="small muted">{e.description}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
