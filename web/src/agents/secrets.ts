import { api, useAsked } from "../api/client";
import { owners } from "../servers/owners";

interface SecretName {
  owner: string;
  name: string;
}

/** The names of the secrets that can be referred to: one's own, and those of a namespace as far as one may see them. */
export function useSecrets(namespace: string): SecretName[] {
  const asked = useAsked(async (signal) => {
    const out: SecretName[] = [];
    for (const owner of owners(namespace)) {
      const { data } = await api.GET("/api/v1/secrets", { params: { query: { owner } }, signal });
      out.push(...(data?.items ?? []).map((s) => ({ owner, name: s.name })));
    }
    return out;
  }, [namespace]);
  return asked.data ?? [];
}
