import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { namespaceName } from "../servers/serverlist";
import type { Kind, Ref } from "./document";

const most = 20;

/** allOf loads all visible resources of a kind, or those of a namespace. */
export async function allOf(kind: Kind, signal?: AbortSignal, namespace?: string): Promise<Schema["Kind"][]> {
  const out: Schema["Kind"][] = [];
  let after: string | undefined;
  for (let i = 0; i < most; i++) {
    const page = await got(
      api.GET("/api/v1/kinds/{kind}", { params: { path: { kind }, query: { namespace, after, limit: 100 } }, signal }),
    );
    out.push(...page.items);
    if (!page.next) break;
    after = page.next;
  }
  return out;
}

const keyOf = (ref: Ref) => `${ref.namespace ?? ""}/${ref.name}`;

/**
 * useChoice returns the options of a select for resources of a kind. It includes the chosen one
 * even if it was deleted.
 */
export function useChoice(kind: Kind, chosen: Ref | undefined, home: string) {
  const load = useLoad((signal) => allOf(kind, signal), [kind]);
  const refs = (load.data ?? []).map((k): Ref => ({
    name: k.metadata.name,
    ...(k.metadata.namespace === home ? {} : { namespace: k.metadata.namespace }),
  }));
  const at =
    chosen &&
    refs.find((r) => r.name === chosen.name && (chosen.namespace ? (r.namespace ?? home) === chosen.namespace : true));
  const options = refs.map((r): [string, string] => [keyOf(r), `${r.name} (${namespaceName(r.namespace ?? home)})`]);
  const gone = chosen && load.data && !at ? chosen : undefined;
  if (gone) options.unshift([keyOf(gone), keyOf(gone).replace(/^\//, "")]);
  const of = (key: string): Ref | undefined =>
    refs.find((r) => keyOf(r) === key) ?? (chosen && keyOf(chosen) === key ? chosen : undefined);
  return { load, options, value: at ? keyOf(at) : chosen ? keyOf(chosen) : "", of, gone };
}
