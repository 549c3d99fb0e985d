import type { Schema } from "../api/client";
import { carryOut } from "./action";
import { opened, settled } from "./waiting";

/** Takes what is told of questions from a conversation that is watched. */
export function handleEvent(session: string, event: Schema["ChatEvent"]) {
  if (event.ask) {
    if (event.ask.deadline && new Date(event.ask.deadline).getTime() < Date.now()) return;
    opened({ ...event.ask, session });
    if (event.ask.kind === "action") void carryOut(event.ask);
  }
  if (event.answer) settled(event.answer.id);
}
