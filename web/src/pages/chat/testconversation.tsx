import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { TestChatProps } from "../../features/resources/testchat";
import { msg } from "../../shared/i18n/messages";
import { Button } from "../../shared/ui";
import { useBranch } from "./branches";
import { Composer } from "./composer";
import { useConversation } from "./conversation";
import type { Draft } from "./drafts";
import { Messages } from "./messages";
import { cancel, sendMessage } from "./send";
import { put, remove } from "./sessions";
import { isBusy, runningTurn } from "./transcript";

/** TestConversation tries an agent. Its conversations are deleted when it is closed. */
export default function TestConversation({ id: form, begin, version }: TestChatProps) {
  const draft = `test ${form}`;
  const [session, setSession] = useState<{ id: string; version: string }>();
  const open = useRef<string>(undefined);
  const close = () => {
    if (open.current) void remove(open.current).catch(() => {}); // the hub deletes it later
    open.current = undefined;
  };
  useEffect(() => close, []);
  const send = async (draft: Draft) => {
    let id = session?.version === version ? session.id : undefined;
    if (!id) {
      const made = await begin();
      close();
      put(made);
      open.current = id = made.id;
      setSession({ id, version });
    }
    await sendMessage(id, draft);
  };
  const changed = session && session.version !== version;
  return (
    <section class="chat-talk chat-test" aria-label={msg("agents.testTitle")}>
      <header class="row keep">
        <h2 class="grow">{msg("agents.testTitle")}</h2>
        {session && (
          <Button
            small
            onClick={() => {
              close();
              setSession(undefined);
            }}
          >
            {msg("agents.testAgain")}
          </Button>
        )}
      </header>
      {changed && (
        <p class="note small" role="status">
          {msg("agents.testChanged")}
        </p>
      )}
      {session ? (
        <Talk key={session.id} id={session.id} draft={draft} send={send} />
      ) : (
        <Silent draft={draft} send={send} />
      )}
    </section>
  );
}

interface TalkProps {
  /** The key of the unsent message. */
  draft: string;
  send: (draft: Draft) => Promise<void>;
}

const Silent = ({ draft, send }: TalkProps) => (
  <>
    <div class="chat-scroll">
      <p class="muted small chat-test-hint">{msg("agents.testHint")}</p>
    </div>
    <div class="chat-foot-area">
      <Composer id={draft} send={send} busy={false} quiet />
    </div>
  </>
);

function Talk({ id, draft, send }: TalkProps & { id: string }) {
  const c = useConversation(id);
  const transcript = c.transcript.value;
  const branch = useBranch(transcript);
  const stop = useCallback(() => cancel(id), [id]);
  return (
    <>
      <Messages
        transcript={transcript}
        turns={branch.turns}
        versions={branch.versions}
        ready={c.ready.value}
        session={id}
      />
      <div class="chat-foot-area">
        <Composer
          id={draft}
          send={send}
          busy={isBusy(transcript)}
          onStop={runningTurn(transcript) || isBusy(transcript) ? stop : undefined}
          quiet
        />
      </div>
    </>
  );
}
