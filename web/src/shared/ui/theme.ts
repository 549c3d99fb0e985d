import { signal } from "@preact/signals";
import { store, stored } from "../i18n/storage";

export type Theme = "system" | "light" | "dark";

const kept = stored("loadout.theme");

/** The chosen theme. A script in index.html applies it before the first paint. */
export const theme = signal<Theme>(kept === "light" || kept === "dark" ? kept : "system");

export function choose(to: Theme) {
  theme.value = to;
  store("loadout.theme", to === "system" ? null : to);
  if (to === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = to;
  dark.value = isDark();
}

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (theme.value === "system" ? system.matches : theme.value === "dark");

/** Whether the page is dark, for content with its own colors. */
export const dark = signal(isDark());
system.addEventListener("change", () => (dark.value = isDark()));
