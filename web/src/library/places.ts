import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { me } from "../api/me";
import { failed } from "../ui";
import { w } from "./words";

const groups = signal<Schema["Group"][]>();
const people = signal<Schema["User"][]>();

const most = 500;

/** The groups of whoever is signed in, once they are known. */
function useGroups(): Schema["Group"][] {
  useEffect(() => {
    if (groups.value) return;
    groups.value = [];
    got(api.GET("/api/v1/groups", { params: { query: { limit: most } } })).then((page) => (groups.value = page.items), failed);
  }, []);
  return groups.value ?? [];
}

/** Says what people are called. Whom it does not know goes by the id. */
export function usePeople(): (id: string) => string {
  useEffect(() => {
    if (people.value) return;
    people.value = [];
    got(api.GET("/api/v1/users", { params: { query: { limit: most } } })).then((page) => (people.value = page.items), () => undefined);
  }, []);
  return (id) => {
    if (id === me.value?.user.id) return w().you;
    const found = people.value?.find((u) => u.id === id);
    return found ? found.display || found.name : id;
  };
}

/** Says what a namespace is called: one's own, a group, everybody's, somebody else's. */
export function usePlaces(): (namespace: string) => string {
  const all = useGroups();
  const person = usePeople();
  return (namespace) => {
    const [kind, id = ""] = namespace.split(/:(.*)/s);
    if (namespace === "public") return w().everybody;
    if (kind === "group") {
      const group = all.find((g) => g.id === id);
      return group ? group.display || group.name : w().aGroup;
    }
    return id === me.value?.user.id ? w().mine : person(id);
  };
}

/** The namespaces to which somebody may put skills: his own, and those of groups that he belongs to. */
export function useScopes(): [namespace: string, name: string][] {
  const all = useGroups();
  const mine = me.value ? `user:${me.value.user.id}` : "";
  return [[mine, w().mine], ...all.map((g): [string, string] => [`group:${g.id}`, g.display || g.name]), ["public", w().everybody]];
}
