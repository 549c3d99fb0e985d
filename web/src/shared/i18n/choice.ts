import { languages, loadMessages } from "./messages";
import { store, stored } from "./storage";

const key = "loadout.language";

/** startLanguage loads the language that the user chose, else the first one that the browser prefers. */
export function startLanguage(): Promise<void> {
  const wanted = [stored(key) ?? "", ...navigator.languages, "en"];
  return loadMessages(wanted.map(fileFor).find((code) => code) ?? "en");
}

/** fileFor returns the language of a message file that serves a tag, such as zh-Hans for zh-CN. */
const fileFor = (tag: string): string | undefined =>
  languages.find((code) => code === tag) ??
  languages.find((code) => code.split("-")[0] === tag.toLowerCase().split("-")[0]);

/** chooseLanguage shows the page in another language, also after a reload. */
export function chooseLanguage(code: string): Promise<void> {
  store(key, code);
  return loadMessages(code);
}

/** languageName returns the name of a language in that language, such as "English". */
export const languageName = (code: string): string =>
  new Intl.DisplayNames([code], { type: "language" }).of(code) ?? code;
