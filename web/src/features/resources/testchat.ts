import type { ComponentType } from "preact";
import type { Schema } from "../../shared/api/client";

/** The props of a conversation beside the form of an agent. */
export interface TestChatProps {
  /** Names the form, to which an unsent message belongs. */
  id: string;
  /** Begins a conversation with the agent as it was entered. */
  begin: () => Promise<Schema["Session"]>;
  /** Differs for each input. After a change, the next message begins a new conversation. */
  version: string;
}

/** The conversation beside the form of an agent. The page of conversations provides it. */
export type TestChatPart = ComponentType<TestChatProps>;
