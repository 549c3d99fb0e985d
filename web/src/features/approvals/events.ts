import type { Schema } from "../../shared/api/client";
import { runPageAction } from "./pageaction";
import { opened, removeRequest } from "./requests";

/** handleEvent applies an event of a watched conversation to the list of requests. */
export function handleEvent(session: string, event: Schema["ChatEvent"]) {
  if (event.ask) {
    if (event.ask.deadline && new Date(event.ask.deadline).getTime() < Date.now()) return;
    opened({ ...event.ask, session });
    if (event.ask.kind === "action") void runPageAction(event.ask);
  }
  if (event.answer) removeRequest(event.answer.id);
}
