import { same, test } from "../../../test/units/check";
import { api } from "../../shared/api/client";
import {
  archived,
  change,
  displayed,
  listOf,
  more,
  openFolders,
  put,
  refresh,
  refreshFolders,
  reloadShown,
  type Session,
  sessionOf,
  showArchived,
  toggleFolder,
  unfiled,
} from "./sessions";

const session = (id: string, more: Partial<Session> = {}) => ({ id, title: id, owner: "ada", ...more }) as Session;

/** hub answers lists by folder, in pages of two. */
function hub(all: Session[]) {
  const answer = {
    onRequest({ request, schemaPath }: { request: Request; schemaPath: string }) {
      const url = new URL(request.url);
      if (schemaPath === "/api/v1/folders")
        return Response.json({ items: [{ id: "sea", name: "Sea", sessions: 1, pinned: 0 }] });
      if (request.method === "PATCH") {
        const at = all.findIndex((s) => url.pathname.endsWith(s.id));
        return request.json().then((body: object) => Response.json((all[at] = { ...all[at]!, ...body })));
      }
      const folder = url.searchParams.get("folder");
      const found = all
        .filter((s) => !!s.archived === (url.searchParams.get("archived") === "true"))
        .filter((s) => !folder || (folder === "none" ? s.pinned || !s.folder : s.folder === folder))
        .sort(
          (a, b) =>
            Number(!!b.pinned) - Number(!!a.pinned) ||
            (b.last_message ?? "").localeCompare(a.last_message ?? "") ||
            (a.id < b.id ? 1 : -1),
        );
      const from = Number(url.searchParams.get("after") ?? 0);
      const next = from + 2 < found.length ? String(from + 2) : undefined;
      return Response.json({ items: found.slice(from, from + 2), next });
    },
  };
  api.use(answer);
  return () => api.eject(answer);
}

const ids = () => displayed().map((s) => s.id);

test("conversations are listed as pinned, in open folders and by age, and move between lists", async () => {
  const end = hub([
    session("a"),
    session("b", { folder: "sea" }),
    session("c", { pinned: true, folder: "sea" }),
    session("d"),
    session("e", { archived: true }),
    session("f"),
  ]);
  await refreshFolders();
  await refresh(unfiled);
  same(ids(), ["c", "f"]); // a page
  await more(unfiled);
  same(ids(), ["c", "f", "d", "a"]);
  same(listOf(unfiled)?.next, undefined);
  toggleFolder("sea");
  await refresh("sea");
  same(ids(), ["c", "b", "f", "d", "a"]);
  await change("d", { pinned: true });
  same(ids(), ["d", "c", "b", "f", "a"]);
  await change("c", { pinned: false });
  same(ids(), ["d", "c", "b", "f", "a"]); // now in the folder
  await change("f", { folder: "sea" });
  same(ids(), ["d", "f", "c", "b", "a"]);
  await change("a", { archived: true });
  same(ids(), ["d", "f", "c", "b"]);
  same(sessionOf("a")?.archived, true); // it may be open
  showArchived.value = true;
  await refresh(archived);
  same(ids(), ["e", "a"]);
  put(session("e"));
  same(ids(), ["a"]);
  showArchived.value = false;
  same(ids(), ["d", "f", "c", "b", "e"]);
  toggleFolder("sea");
  same(ids(), ["d", "e"]);
  same(openFolders.value, []);
  end();
});

test("a conversation beyond the loaded page is not listed before it", async () => {
  const end = hub([session("1"), session("2"), session("3")]);
  await refresh(unfiled);
  same(ids(), ["3", "2"]);
  put(session("1", { title: "new" }));
  same(ids(), ["3", "2"]);
  same(sessionOf("1")?.title, "new");
  put(session("4"));
  same(ids(), ["4", "3", "2"]);
  await refresh(unfiled);
  end();
});

test("a conversation that comes to a list late appears among all that were shown", async () => {
  const all = ["i", "h", "g", "f", "e", "d"].map((id) => session(id, { folder: id === "f" ? "old" : "lake" }));
  const end = hub(all);
  await refresh("lake");
  await more("lake");
  const shown = () => listOf("lake")!.items.map((s) => s.id);
  same(shown(), ["i", "h", "g", "e"]);
  all[3]!.folder = "lake";
  await reloadShown("lake");
  same(shown(), ["i", "h", "g", "f"]);
  await more("lake");
  same(shown(), ["i", "h", "g", "f", "e", "d"]);
  end();
});

test("a conversation of a later page with a new message is listed once", async () => {
  const at = (day: number) => `2026-05-0${day}T10:00:00Z`;
  const all = ["d", "c", "b", "a"].map((id, i) => session(id, { folder: "tide", last_message: at(4 - i) }));
  const end = hub(all);
  await refresh("tide");
  await more("tide");
  all[3] = { ...all[3]!, last_message: at(5) };
  await refresh("tide");
  same(
    listOf("tide")!.items.map((s) => s.id),
    ["a", "d", "c", "b"],
  );
  end();
});

test("a conversation with a new message moves to the start of its part of the list", async () => {
  const at = (day: number) => `2026-05-0${day}T10:00:00Z`;
  const end = hub([session("c", { last_message: at(3) }), session("b", { last_message: at(2) })]);
  await refresh(unfiled);
  put(session("b", { last_message: at(4) }));
  same(
    listOf(unfiled)!.items.map((s) => s.id),
    ["b", "c"],
  );
  put(session("c", { last_message: at(3), title: "renamed" }));
  same(
    listOf(unfiled)!.items.map((s) => s.id),
    ["b", "c"],
  );
  end();
});
