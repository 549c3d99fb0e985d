import { holds, same, test } from "../../../test/units/check";
import { api, away, Refusal } from "../../shared/api/client";
import { limits } from "../../shared/api/limits";
import { sendMessage } from "./send";

/**
 * hub answers requests, and returns them with their keys. The first ones of messages get a status. The conversation has
 * the file a.txt.
 */
function hub(...lost: number[]) {
  const got: string[] = [];
  const paths: string[] = [];
  const bodies: unknown[] = [];
  const keys: (string | null)[] = [];
  const answer = {
    async onRequest({ request, schemaPath }: { request: Request; schemaPath: string }) {
      if (schemaPath === "/api/v1/about") return Response.json({ limits: { session_file: 5 } });
      got.push(`${request.method} ${schemaPath.replace("/api/v1/sessions/{session}", "")}`);
      if (request.method === "GET") return Response.json({ items: [{ path: "a.txt" }] });
      if (request.method === "PUT") paths.push(decodeURIComponent(new URL(request.url).pathname.split("/files/")[1]!));
      if (request.method === "POST") keys.push(request.headers.get("Idempotency-Key"));
      if (schemaPath.endsWith("/messages")) bodies.push(await request.json());
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
    paths,
    bodies,
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
  const { got, keys, paths, bodies, end } = hub(502);
  const message = draft("abc");
  holds((await failed(sendMessage("s", message, 4))) instanceof Refusal, "the response is lost");
  same(await sendMessage("s", message, 4), 7);
  same(got, ["POST /branch", "GET /files", "PUT /files/{path}", "POST /messages", "POST /branch", "POST /messages"]);
  same(paths, ["a-2.txt"]); // no file of the conversation is replaced, and no file is uploaded again
  same(bodies[1], bodies[0]);
  holds(keys[0] && keys[1], "both have a key");
  same(keys.slice(2), keys.slice(0, 2), "again with the same keys");
  await sendMessage("s", draft("abc"), 4);
  holds(keys[4] !== keys[0], "the next message switches again");
  end();
});

test("images are always sent as images, and under names that the hub accepts", async () => {
  const { paths, bodies, end } = hub();
  const files = ["Screenshot at 10.53.31\u202fAM.png", "a:b\\c\u200b.png", "\u200b"].map(
    (name) => new File(["abc"], name, { type: "image/png" }),
  );
  await sendMessage("v", { text: "", files });
  const names = ["Screenshot at 10.53.31 AM.png", "a-b-c.png", "file"];
  same(paths, names);
  same(bodies, [{ text: "", images: names.map((path) => ({ path })) }]);
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
  const large = new Uint8Array((await limits()).session_file + 1); // another test may have loaded the limits
  const error = await failed(
    sendMessage("u", { ...draft("abc"), files: [new File(["abc"], "a"), new File([large], "b")] }, 4),
  );
  holds(error.message.startsWith("b is too large"), error.message);
  same(got, []);
  end();
});
