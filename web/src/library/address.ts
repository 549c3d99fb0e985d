import { useLocation } from "preact-iso";

/** What the address of the page says behind its path, and how to say something else there. */
export interface Address {
  get: (name: string) => string;
  /** The address with some values changed; "" takes one out. */
  with: (changes: Record<string, string>) => string;
  /** Go there. A step that one goes back from by the browser is made for what is worth it. */
  go: (changes: Record<string, string>, step?: boolean) => void;
}

export function useAddress(): Address {
  const { path, query, route } = useLocation();
  const to = (changes: Record<string, string>) => {
    const all = new URLSearchParams(Object.entries({ ...query, ...changes }).filter(([, v]) => v !== ""));
    return all.size ? `${path}?${all}` : path;
  };
  return { get: (name) => query[name] ?? "", with: to, go: (changes, step) => route(to(changes), !step) };
}

/** The page of a skill. */
export const pageOf = (id: string) => `/library/${encodeURIComponent(id)}`;

/** A file of a version, as the API has it. */
export const fileOf = (id: string, version: number, path: string) =>
  `/api/v1/skills/${encodeURIComponent(id)}/versions/${version}/files/${path.split("/").map(encodeURIComponent).join("/")}`;

/** The package of a version. */
export const packageOf = (id: string, version: number) => `/api/v1/skills/${encodeURIComponent(id)}/versions/${version}/package`;

/** A conversation that begins with a skill. */
export const chatWith = (name: string) => `/?skill=${encodeURIComponent(name)}`;
