import { holds, same, test } from "../../../test/units/check";
import { api, away, Refusal } from "../../shared/api/client";
import { sendMessage } from "./send";

/** hub answers requests, and returns them with their keys. The first ones of messages get a status. */
function hub(...lost: number[]) {
  const got: string[] = [];
  const keys: (string | null)[] = [];
  const answer = {
    onRequest({ request, schemaPath }: { request: Request; schemaPath: string }) {
      if (schemaPath === "/api/v1/about") return Response.json({ limits: { session_file: 5 } });
      got.push(`${request.method} ${schemaPath.replace("/api/v1/sessions/{session}", "")}`);
      if (request.method === "POST") keys.push(request.headers.get("Idempotency-Key"));
      const status = schemaPath.endsWith("/messages") ? lost.shift() : undefined;
      if (status) return Response.json({ status, code: "lost", title: "Lost", detail: "lost" }, { status });
      return request.method === "PUT"
        ? new Response(null, { status: 204 })
        : Response.json({ input: 7 }, { status: 202 });
    },
  };
  api.use(answer);
  return {
    got,
    keys,
    end: () => {
      api.eject(answer);
      away.value = false;
    },
  };
}

const draft = (text: string) => ({ text: "hello", files: [new File([text], "a.txt")] });
const failed = async (sent: Promise<number>) => {
  const error = await sent.then(
    () => undefined,
    (e: unknown) => e,
  );
  holds(error, "it fails");
  return error as Error;
};

test("a message with files that is sent again after a lost response switches the branch once", async () => {
  const { got, keys, end } = hub(502);
  holds((await failed(sendMessage("s", draft("abc"), 4))) instanceof Refusal, "the response is lost");
  same(await sendMessage("s", draft("abc"), 4), 7);
  const once = ["POST /branch", "PUT /files/{path}", "POST /messages"];
  same(got, [...once, ...once]);
  holds(keys[0] && keys[1], "both have a key");
  same(keys.slice(2), keys.slice(0, 2), "again with the same keys");
  await sendMessage("s", draft("abc"), 4);
  holds(keys[4] !== keys[0], "the next message switches again");
  end();
});

test("after a refused message, the next one switches the branch again", async () => {
  const { keys, end } = hub(403);
  await failed(sendMessage("t", draft("abc"), 4));
  await sendMessage("t", draft("abc"), 4);
  holds(keys[2] !== keys[0], "it is another switch");
  end();
});

test("a file that is too large is refused before anything is sent", async () => {
  const { got, end } = hub();
  const error = await failed(
    sendMessage("u", { ...draft("abc"), files: [new File(["abc"], "a"), new File(["abcdef"], "b")] }, 4),
  );
  holds(error.message.startsWith("b is too large"), error.message);
  same(got, []);
  end();
});
