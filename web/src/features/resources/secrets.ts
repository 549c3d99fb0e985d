import { api, useLoad } from "../../shared/api/client";
import { owners } from "../servers/owners";

interface SecretName {
  owner: string;
  name: string;
}

/** useSecrets returns the names of the user's secrets and of the visible secrets of a namespace. */
export function useSecrets(namespace: string): SecretName[] {
  const load = useLoad(
    async (signal) => {
      const out: SecretName[] = [];
      for (const owner of await owners(namespace)) {
        const { data } = await api.GET("/api/v1/secrets", { params: { query: { owner } }, signal });
        out.push(...(data?.items ?? []).map((s) => ({ owner, name: s.name })));
      }
      return out;
    },
    [namespace],
  );
  return load.data ?? [];
}
