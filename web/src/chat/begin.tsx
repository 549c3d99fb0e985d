import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { useEffect } from "preact/hooks";
import { useTitle } from "../shell/page";
import { failed } from "../ui";
import { AgentField } from "./agents";
import { Composer } from "./composer";
import { type Draft, draftOf, empty, keepDraft } from "./drafts";
import { begin, Begun } from "./send";
import { named, useSkills } from "./skills";
import { w } from "./words";

/** A conversation that is not begun: what this is for, and where to write. The agent is in the address; list opens the conversations. */
export function Begin({ list }: { list: ComponentChildren }) {
  const t = w();
  const { query, route } = useLocation();
  const agent = query.agent ?? "";
  useTitle(t.fresh);
  useEffect(() => {
    if (!query.skill) return; // with one, the page of that skill has sent one here
    keepDraft("", { ...(draftOf("") ?? empty), skill: query.skill });
    route(agent ? `/?agent=${encodeURIComponent(agent)}` : "/", true);
  }, [query.skill]);
  const send = async (draft: Draft) => {
    try {
      route(`/chat/${await begin(agent, draft)}`);
    } catch (error) {
      if (!(error instanceof Begun)) throw error;
      keepDraft(error.session, draft); // it is begun, and waits there to be sent
      failed(error.why);
      route(`/chat/${error.session}`);
    }
  };
  return (
    <section class="chat-talk begin">
      {list && <header class="chat-head">{list}</header>}
      <div class="chat-hello">
        <h1>{t.hello}</h1>
        <p class="muted">{t.helloText}</p>
        <Examples />
      </div>
      <div class="chat-foot-area">
        <AgentField agent={agent} onAgent={(a) => route(a ? `/?agent=${encodeURIComponent(a)}` : "/", true)} />
        <Composer id="" send={send} busy={false} />
      </div>
    </section>
  );
}

/** Requests that the skills which are there are for; one that is taken can be changed before it is sent. */
function Examples() {
  const t = w();
  const skills = useSkills();
  if (!skills) return null;
  const shown = skills.filter((s) => !s.hidden).sort((a, b) => b.updated.localeCompare(a.updated)).slice(0, 3).map(named);
  if (!shown.length) return <p>{t.noSkills} <a href="/library/add">{t.toLibrary}</a></p>;
  const take = (text: string, skill: string) => {
    keepDraft("", { ...(draftOf("") ?? empty), text, skill });
    document.querySelector<HTMLTextAreaElement>(".chat-input")?.focus();
  };
  return (
    <>
      <h2 class="chat-label">{t.examples}</h2>
      <ul class="chat-examples">
        {shown.map((n) => (
          <li key={n.name}>
            <button type="button" onClick={() => take(t.example(n.title), n.name)}>
              <strong>{t.example(n.title)}</strong>
              <span class="small muted">{n.description}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
