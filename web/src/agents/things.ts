import { api, got, useAsked, type Schema } from "../api/client";
import { placeName } from "../servers/list";
import type { Kind, Ref } from "./document";

const most = 20;

/** All things of a kind that one sees. */
export async function allOf(kind: Kind, signal?: AbortSignal): Promise<Schema["Kind"][]> {
  const out: Schema["Kind"][] = [];
  let after: string | undefined;
  for (let i = 0; i < most; i++) {
    const page = await got(api.GET("/api/v1/kinds/{kind}", { params: { path: { kind }, query: { after, limit: 100 } }, signal }));
    out.push(...page.items);
    if (!page.next) break;
    after = page.next;
  }
  return out;
}

const keyOf = (ref: Ref) => `${ref.namespace ?? ""}/${ref.name}`;

/** Things of a kind to choose one from, in words; the one that is chosen is among them though it be gone. */
export function useChoice(kind: Kind, chosen: Ref | undefined, home: string) {
  const asked = useAsked((signal) => allOf(kind, signal), [kind]);
  const refs = (asked.data ?? []).map((k): Ref => ({ name: k.metadata.name, ...(k.metadata.namespace === home ? {} : { namespace: k.metadata.namespace }) }));
  const at = chosen && refs.find((r) => r.name === chosen.name && (chosen.namespace ? (r.namespace ?? home) === chosen.namespace : true));
  const options = refs.map((r): [string, string] => [keyOf(r), `${r.name} (${placeName(r.namespace ?? home)})`]);
  const gone = chosen && asked.data && !at ? chosen : undefined;
  if (gone) options.unshift([keyOf(gone), keyOf(gone).replace(/^\//, "")]);
  const of = (key: string): Ref | undefined => refs.find((r) => keyOf(r) === key) ?? (chosen && keyOf(chosen) === key ? chosen : undefined);
  return { asked, options, value: at ? keyOf(at) : chosen ? keyOf(chosen) : "", of, gone };
}
