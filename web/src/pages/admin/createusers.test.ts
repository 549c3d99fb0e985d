import { same, test } from "../../../test/units/check";
import type { NewUser } from "../../features/csv/newusers";
import { api, away, signedOut } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { createUsers, keepImport, keptImport, newImport, type Result } from "./createusers";

/** hub answers the creation of users with these statuses in order, then with success. */
function hub(...statuses: number[]) {
  const sent: { name: string; password?: string; key: string | null }[] = [];
  const answer = {
    async onRequest({ request, schemaPath }: { request: Request; schemaPath: string }) {
      if (schemaPath !== "/api/v1/users") return new Response(null, { status: 204 });
      sent.push({ ...((await request.json()) as { name: string }), key: request.headers.get("Idempotency-Key") });
      const status = statuses.shift();
      if (!status) return Response.json({ id: "u" }, { status: 201 });
      const code = { 503: "busy", 409: "exists" }[status] ?? "x";
      return Response.json({ status, code, title: "No", detail: "no" }, { status, headers: { "Retry-After": "0" } });
    },
  };
  api.use(answer);
  return {
    sent,
    end: () => {
      api.eject(answer);
      away.value = false;
      signedOut.value = false;
    },
  };
}

const user = (name: string, line: number): NewUser => ({ line, name, display: "", email: "", groups: [], errors: [] });

async function create(...statuses: number[]) {
  const made = newImport([user("ada", 2), user("bob", 3)], false, true);
  const { sent, end } = hub(...statuses);
  const keep = (line: number, result: Result) => (made.results[line] = result);
  const run = () =>
    createUsers(made, keep, new AbortController().signal).then(
      () => "",
      (e: Error) => e.message,
    );
  return { made, sent, end, run };
}

test("creating users: after a lost response, the same password is sent with the same key", async () => {
  const { made, sent, end, run } = await create(502);
  const { password, key } = made.results[2]!;
  same([await run(), sent.length], ["no", 1]); // the others are not tried
  same([await run(), made.results[2]!.done, made.results[3]!.done], ["", true, true]);
  end();
  same(
    sent.slice(0, 2).map((s) => [s.name, s.password, s.key]),
    [
      ["ada", password, key],
      ["ada", password, key],
    ],
  );
  same(new Set(sent.map((s) => s.key)).size, 2);
});

test("creating users: it waits for a busy hub, goes on after a refusal, and stops when the permission is gone", async () => {
  const busy = await create(503, 429);
  same([await busy.run(), busy.sent.map((s) => s.name)], ["", ["ada", "ada", "ada", "bob"]]);
  busy.end();
  const taken = await create(409);
  same([await taken.run(), taken.sent.length, taken.made.results[2]!.refused], ["", 2, true]);
  taken.end();
  const failed = await create(500); // the user may exist, so the password is kept
  same([await failed.run(), failed.made.results[2]!.refused], ["", false]);
  same([await failed.run(), failed.made.results[2]!.done, failed.made.results[2]!.refused], ["", true, undefined]);
  failed.end();
  for (const status of [401, 403]) {
    const gone = await create(status);
    same([await gone.run(), gone.sent.length, gone.made.results[2]!.refused], ["no", 1, false]);
    gone.end();
  }
});

test("creating users: an import that goes on after a new sign-in still creates users without passwords", async () => {
  const before = me.value;
  me.value = { user: { id: "root" } } as typeof me.value;
  keepImport({ ...newImport([user("ada", 2)], false, false), began: true });
  const { sent, end } = hub();
  await createUsers(keptImport()!, () => {}, new AbortController().signal);
  end();
  same([sent.length, sent[0]!.password], [1, undefined]);
  keepImport(undefined);
  me.value = before;
});
