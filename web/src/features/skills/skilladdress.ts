import { useLocation } from "preact-iso";

/** The query parameters of the page, and functions to change them. */
export interface Address {
  get: (name: string) => string;
  /** Returns the address with changed parameters. The value "" removes one. */
  with: (changes: Record<string, string>) => string;
  /** Goes to the address with changed parameters. With `step` the browser's back button returns here. */
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

/** pageOf returns the page of a skill. */
export const pageOf = (id: string) => `/library/${encodeURIComponent(id)}`;

/** composeOf returns the page to edit a skill: its current version, or another one. */
export const composeOf = (id: string, version?: number) =>
  `/compose/${encodeURIComponent(id)}${version ? `?version=${version}` : ""}`;

/** fileOf returns the API address of a file of a version. */
export const fileOf = (id: string, version: number, path: string) =>
  `/api/v1/skills/${encodeURIComponent(id)}/versions/${version}/files/${path.split("/").map(encodeURIComponent).join("/")}`;

/** packageOf returns the API address of the package of a version. */
export const packageOf = (id: string, version: number) =>
  `/api/v1/skills/${encodeURIComponent(id)}/versions/${version}/package`;

/** chatWith returns the address of a new conversation with a skill. */
export const chatWith = (name: string) => `/?skill=${encodeURIComponent(name)}`;
