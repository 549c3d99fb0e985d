import { messagesOf } from "../i18n/messages";

/** panelPhrases are the texts of CodeMirror's own panels. CodeMirror has the English ones. */
export const panelPhrases = (): Record<string, string> => Object.fromEntries(messagesOf("editorPanel"));
