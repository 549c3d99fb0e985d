import { holds, same, test, until } from "../../../test/units/check";
import { away, Refusal, Unreachable } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { toasts } from "../../shared/ui/notify";
import { cancelDraft, changeDraft, deliver, type Draft, draftOf, empty, keepDraft } from "./drafts";

const full = new Refusal({ status: 403, code: "quota", title: "Forbidden", detail: "storage is full" });
const message = { ...empty, text: "hello", skill: "tides" };

/** hub returns a function that sends to a hub, which loses or refuses the first messages. */
function hub(...errors: Error[]) {
  const got: Draft[] = [];
  const send = async (draft: Draft) => {
    got.push(draft);
    const error = errors.shift();
    away.value = error instanceof Unreachable;
    await Promise.resolve();
    if (error) throw error;
  };
  return { got, send };
}

const waiting = (id: string) => until(() => draftOf(id).state === "waiting", "the message to wait");

test("a refused message can be changed and sent again, also while another request is lost", async () => {
  const { send, got } = hub(full);
  keepDraft("refused", message);
  const sent = deliver("refused", send);
  away.value = true;
  same(await sent.catch((e: Error) => e.message), full.message);
  away.value = false;
  same(draftOf("refused"), message);
  same(got, [message], "it is sent without a state");
});

test("a waiting message does not change, and is sent as it was when the hub is back", async () => {
  const { send, got } = hub(new Unreachable());
  keepDraft("waits", message);
  const sent = deliver("waits", send);
  changeDraft("waits", { text: "while it is sent" });
  holds(
    toasts.value.some((t) => t.text === msg("chat.notChanged")),
    "it says why",
  );
  await waiting("waits");
  changeDraft("waits", { text: "while it waits", skill: "other" });
  same(draftOf("waits"), { ...message, state: "waiting" });
  away.value = false;
  await sent;
  same(got, [message, message]);
  same(draftOf("waits"), empty);
});

test("a cancelled message is not sent, and can be changed", async () => {
  const { send, got } = hub(new Unreachable());
  keepDraft("cancelled", message);
  const sent = deliver("cancelled", send);
  await waiting("cancelled");
  cancelDraft("cancelled");
  await sent;
  changeDraft("cancelled", { text: "bye" });
  same(draftOf("cancelled"), { ...message, text: "bye" });
  away.value = false;
  same(got.length, 1);
});

test("a message is sent at most three times", async () => {
  const { send, got } = hub(...Array.from({ length: 9 }, () => new Unreachable()));
  keepDraft("lost", message);
  let error: Error | undefined;
  const sent = deliver("lost", send).catch((e: Error) => (error = e));
  for (let n = 1; n < 3; n++) {
    await until(() => got.length === n && draftOf("lost").state === "waiting", `attempt ${n}`);
    away.value = false;
  }
  await sent;
  away.value = false;
  holds(error, "it ends with an error");
  same(got.length, 3);
  same(draftOf("lost"), message);
});
